import { unlessAborted } from "../lib/deadline.ts";
import type { ToolList } from "./mcp-calls.ts";
import type { McpServer } from "./mcp.ts";
import { McpFault } from "./mcp-faults.ts";
import { openSession, type Session, type Waits } from "./mcp-session.ts";
import { secretsOf } from "./mcp-secrets.ts";

const IDLE_MS = 300_000;
const MAX_SESSIONS = 100;
const WAITS: Waits = {
  connect_ms: 15_000,
  list_ms: 15_000,
  call_ms: 120_000,
  longest_call_ms: 300_000,
  end_ms: 2_000,
};

export interface PoolOptions {
  idle_ms?: number;
  max_sessions?: number;
  waits?: Partial<Waits>;
}

/** A session, from the moment somebody asks for it. */
export interface Entry {
  /** As whoever used it last described it. */
  server: McpServer;
  /** What it was opened with. */
  made_from: string;
  opening: Promise<Session>;
  /** How many are using it. */
  users: number;
  idle?: Timer;
  /** What the server offered when it was asked last. */
  list?: ToolList & { until: number };
}

interface Use {
  server: McpServer;
  signal: AbortSignal;
  /** Nothing comes of it when it is done twice. */
  repeatable: boolean;
}

/** One session for each connection, opened when it is first needed. */
export class SessionPool implements AsyncDisposable {
  /** By connection, the least recently used first. */
  readonly #current = new Map<string, Entry>();
  /** Those too that get no new users any more. */
  readonly #all = new Set<Entry>();
  readonly #closing = new AbortController();
  readonly #idle_ms: number;
  readonly #max_sessions: number;
  readonly #waits: Waits;

  constructor({ idle_ms = IDLE_MS, max_sessions = MAX_SESSIONS, waits }: PoolOptions) {
    this.#idle_ms = idle_ms;
    this.#max_sessions = max_sessions;
    this.#waits = { ...WAITS, ...waits };
  }

  /** Throws McpFault, NoHandlesError, or the reason of `signal`. Where a session turns out to be lost, the work is done in a new one. */
  async use<T>(
    { server, signal, repeatable }: Use,
    work: (session: Session, entry: Entry) => Promise<T>,
  ): Promise<T> {
    await refuseUse(server);
    const attempt = async (is_last: boolean): Promise<T> => {
      const { entry, is_new } = this.#enter(server);
      try {
        return await work(await unlessAborted(entry.opening, signal), entry);
      } catch (error) {
        const may_be_done_again = error instanceof McpFault && (error.unheard || repeatable);
        if (is_last || is_new || !may_be_done_again) throw error;
        this.#retire(entry);
      } finally {
        this.#leave(entry);
      }
      return attempt(true);
    };
    return attempt(false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new McpFault("This server is about to stop, so it asks no tool server any more."));
    this.#current.clear();
    await Promise.all([...this.#all].map((entry) => this.#close(entry)));
  }

  /** The session of a connection, which becomes the most recently used one. */
  #enter(server: McpServer): { entry: Entry; is_new: boolean } {
    const made_from = originOf(server);
    const known = this.#current.get(server.id);
    if (known && known.made_from !== made_from) this.#retire(known);
    const entry = this.#current.get(server.id) ?? this.#open(server, made_from);
    entry.server = server;
    entry.users += 1;
    clearTimeout(entry.idle);
    this.#current.delete(server.id);
    this.#current.set(server.id, entry);
    const [oldest] = this.#current.values();
    if (this.#current.size > this.#max_sessions && oldest) this.#retire(oldest);
    return { entry, is_new: entry !== known };
  }

  #open(server: McpServer, made_from: string): Entry {
    const entry: Entry = {
      server,
      made_from,
      users: 0,
      opening: openSession({
        who: { id: server.id, label: server.label, secrets: secretsOf(server) },
        server: () => entry.server,
        waits: this.#waits,
        signal: this.#closing.signal,
        onLost: () => this.#retire(entry),
        onToolsChanged: () => delete entry.list,
      }),
    };
    entry.opening.catch(() => this.#retire(entry));
    this.#all.add(entry);
    return entry;
  }

  #leave(entry: Entry): void {
    entry.users -= 1;
    if (entry.users > 0) return;
    if (this.#current.get(entry.server.id) === entry)
      entry.idle = setTimeout(() => this.#retire(entry), this.#idle_ms).unref();
    else void this.#close(entry);
  }

  /** Nobody else begins to use it; whoever does so already may go on. */
  #retire(entry: Entry): void {
    if (this.#current.get(entry.server.id) === entry) this.#current.delete(entry.server.id);
    if (entry.users === 0) void this.#close(entry);
  }

  async #close(entry: Entry): Promise<void> {
    clearTimeout(entry.idle);
    const session = await entry.opening.catch(() => undefined); // whoever waited for it was told
    await session?.close();
    this.#all.delete(entry);
  }
}

/** What a session depends on besides a token, which may change at any time. */
function originOf({ transport }: McpServer): string {
  return transport.kind === "http"
    ? JSON.stringify([transport.url, transport.headers, transport.identity])
    : JSON.stringify([transport.command, transport.args, transport.env]);
}

async function refuseUse({ transport }: McpServer): Promise<void> {
  const refusal = transport.kind === "stdio" ? await transport.refusal?.() : null;
  if (typeof refusal === "string") throw new McpFault(refusal);
}
