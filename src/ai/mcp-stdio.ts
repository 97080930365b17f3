import { setImmediate as nextTurn } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { messageOf } from "../errors.ts";
import { exceedsJsonLimits } from "../lib/json-depth.ts";
import type { Incoming } from "../net/incoming.ts";
import { refuseOwnSpawnFault } from "../lib/own-faults.ts";
import { quote } from "../lib/quote.ts";
import type { StdioTransport } from "./mcp.ts";
import {
  BROKE_OFF,
  fault,
  McpFault,
  type Speaker,
  TOO_LARGE,
  TOO_MANY_PARTS,
  TOO_SLOW,
} from "./mcp-faults.ts";
import { MAX_ANSWER_BYTES, sessionFlow } from "./mcp-streams.ts";

/** Characters of a program's last output on standard error that are kept. */
const MAX_LAST_WORDS_CHARS = 2_048;
/** How long to wait for the last output of a program after it has ended. */
const LAST_OUTPUT_MS = 100;
const LOOK_AGAIN_MS = 20;
/** How many lines of a program are taken before others have their turn. */
const LINES_OF_A_TURN = 50;
const MEND = "The operator of this server can see to it in [mcp.stdio] of the configuration.";

interface StdioOptions {
  who: Speaker;
  program: StdioTransport;
  parse: (line: string) => JSONRPCMessage;
  /** Limits its messages in memory. */
  incoming: Incoming;
  /** Time for a program to end after it was asked to. */
  end_ms: number;
}

type Child = Bun.Subprocess<"pipe", "pipe", "pipe">;

/**
 * A program that speaks MCP on its standard input and output, one message a line. The library's own transport would
 * hand it more of this process's environment, and start it twice.
 */
export class StdioWire implements Transport {
  onmessage?: Transport["onmessage"];
  onerror?: Transport["onerror"];
  onclose?: Transport["onclose"];
  /** Members by which the library recognizes a program. */
  readonly stderr = null;
  pid: number | null = null;
  /** Why it ended by itself, once it did. */
  ended: McpFault | undefined;
  readonly #who: Speaker;
  readonly #program: StdioTransport;
  readonly #parse: (line: string) => JSONRPCMessage;
  readonly #incoming: Incoming;
  readonly #end_ms: number;
  #child: Child | undefined;
  #watched: Promise<void> | undefined;
  #last_words = "";

  constructor({ who, program, parse, incoming, end_ms }: StdioOptions) {
    this.#who = who;
    this.#program = program;
    this.#parse = parse;
    this.#incoming = incoming;
    this.#end_ms = end_ms;
    incoming.signal.addEventListener("abort", () => this.#endFor(TOO_SLOW));
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#program;
    try {
      const child = Bun.spawn([command, ...args], {
        env,
        ...(cwd === undefined ? {} : { cwd }),
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
        // A process group of its own, so that its child processes end with it.
        detached: true,
      });
      this.#child = child;
      this.pid = child.pid;
      this.#watched = this.#watch(child);
    } catch (error) {
      refuseOwnSpawnFault(error);
      this.ended = fault(
        this.#who,
        `could not be started (${quote(messageOf(error), [...this.#who.secrets])}). ${MEND}`,
      );
      throw this.ended;
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child;
    try {
      await child?.stdin.write(`${JSON.stringify(message)}\n`);
      await child?.stdin.flush();
    } catch {
      // The program does not read any more; the reason is known in a moment.
      await Promise.race([this.#watched, Bun.sleep(LAST_OUTPUT_MS * 2)]);
      if (this.ended === undefined) throw fault(this.#who, BROKE_OFF);
    }
    if (this.ended) throw new McpFault(this.ended.message, { unheard: true });
  }

  async close(): Promise<void> {
    if (this.#child !== undefined) await endGroup(this.#child, this.#end_ms);
    await this.#watched;
  }

  async #watch(child: Child): Promise<void> {
    const heard = Promise.allSettled([this.#readMessages(child.stdout), this.#readLastWords(child.stderr)]);
    const code = await child.exited;
    // Child processes may keep its outputs open.
    await Promise.race([heard, Bun.sleep(LAST_OUTPUT_MS)]);
    this.#child = undefined;
    void endGroup(child, this.#end_ms);
    const words = quote(this.#last_words, [...this.#who.secrets], MAX_LAST_WORDS_CHARS);
    const said = words === "" ? "" : ` Its last words: ${words}`;
    this.ended ??= fault(this.#who, `has ended (code ${code}). ${MEND}${said}`);
    this.onclose?.();
  }

  async #readMessages(output: ReadableStream<Uint8Array>): Promise<void> {
    const isTooMuch = sessionFlow();
    let taken = 0;
    for await (const line of linesOf(output, this.#incoming)) {
      if (line === undefined || isTooMuch(0, 1)) return this.#endFor(TOO_LARGE);
      if (exceedsJsonLimits(line)) return this.#endFor(TOO_MANY_PARTS);
      this.#take(line);
      taken += 1;
      if (taken % LINES_OF_A_TURN === 0) await nextTurn();
    }
  }

  #endFor(why: string): void {
    this.ended = fault(this.#who, why);
    void this.close();
  }

  #take(line: string): void {
    try {
      this.onmessage?.(this.#parse(line));
    } catch (error) {
      // Many programs also print other text there.
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #readLastWords(output: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of output)
      this.#last_words = (this.#last_words + decoder.decode(chunk, { stream: true })).slice(
        -MAX_LAST_WORDS_CHARS,
      );
  }
}

/** Yields the lines of an output; undefined in place of one that is too long. */
async function* linesOf(
  output: ReadableStream<Uint8Array>,
  incoming: Incoming,
): AsyncGenerator<string | undefined> {
  const decoder = new TextDecoder();
  let size = 0;
  let pieces: string[] = [];
  try {
    for await (const chunk of output) {
      const [rest = "", ...starts] = decoder.decode(chunk, { stream: true }).split("\n");
      pieces.push(rest);
      size += rest.length;
      for (const start of starts) {
        yield pieces.join("");
        pieces = [start];
        size = start.length;
      }
      if (size > MAX_ANSWER_BYTES) yield undefined;
      await incoming.holds(size);
    }
  } finally {
    void incoming.holds(0);
  }
}

/** Asks a process group to end, and kills it after a while. */
async function endGroup(child: Child, within_ms: number): Promise<void> {
  signalGroup(child, "SIGTERM");
  for (let waited = 0; waited < within_ms && signalGroup(child, 0); waited += LOOK_AGAIN_MS)
    await Bun.sleep(LOOK_AGAIN_MS);
  signalGroup(child, "SIGKILL");
}

/** Sends a signal to a process group. Returns false if no process is left. */
function signalGroup({ pid }: Child, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
