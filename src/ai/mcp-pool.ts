import { unlessAborted } from "../lib/deadline.ts";
import type { OpenIncoming } from "../net/incoming.ts";
import type { ToolList } from "./mcp-calls.ts";
import type { McpServer } from "./mcp.ts";
import { McpFault } from "./mcp-faults.ts";
import { openSession, type Session, type Waits } from "./mcp-session.ts";
import { secretsOf } from "./mcp-secrets.ts";

const IDLE_MS = 300_000;
/** How many sessions are kept; beyond that unused ones are closed. */
const MAX_SESSIONS = 100;
/** How many sessions one account may have, those in use included. */
const MAX_OF_ACCOUNT = 50;
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
  max_of_account?: number;
  waits?: Partial<Waits>;
  /** Memory for long answers. */
  incoming: OpenIncoming;
}

/** A session, from the moment somebody requests it. */
export interface Entry {
  /** The server as its last user described it. */
  server: McpServer;
  /** The server and account of the session; see `keyOf`. */
  key: string;
  /** The settings that it was opened with; see `originOf`. */
  made_from: string;
  opening: Promise<Session>;
  /** How many callers are using it. */
  users: number;
  idle?: Timer;
  /** The tools that the server offered last. */
  list?: ToolList & { until: number };
}

interface Use {
  server: McpServer;
  signal: AbortSignal;
  /** Whether repeating it is harmless. */
  repeatable: boolean;
}

/** Keeps one session for each connection, or for each account and program, opened when first needed. */
export class SessionPool implements AsyncDisposable {
  /** The sessions by `keyOf`, the least recently used first. */
  readonly #current = new Map<string, Entry>();
  /** All sessions, including those closed to new users. */
  readonly #all = new Set<Entry>();
  readonly #closing = new AbortController();
  readonly #idle_ms: number;
  readonly #max_sessions: number;
  readonly #max_of_account: number;
  readonly #waits: Waits;
  readonly #incoming: OpenIncoming;

  constructor({
    idle_ms = IDLE_MS,
    max_sessions = MAX_SESSIONS,
    max_of_account = MAX_OF_ACCOUNT,
    waits,
    incoming,
  }: PoolOptions) {
    this.#idle_ms = idle_ms;
    this.#max_sessions = max_sessions;
    this.#max_of_account = max_of_account;
    this.#waits = { ...WAITS, ...waits };
    this.#incoming = incoming;
  }

  /**
   * Runs work in a session; in a new one if the session turns out to be lost. Throws McpFault, NoHandlesError, or the
   * reason of `signal`.
   */
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

  /**
   * Returns the session of a connection, which becomes the most recently used one. Throws McpFault when its account has
   * too many.
   */
  #enter(server: McpServer): { entry: Entry; is_new: boolean } {
    const made_from = originOf(server);
    const key = keyOf(server);
    const known = this.#current.get(key);
    if (known && known.made_from !== made_from) this.#retire(known);
    const entry = this.#current.get(key) ?? this.#open(server, { key, made_from });
    entry.server = server;
    entry.users += 1;
    clearTimeout(entry.idle);
    this.#current.delete(key);
    this.#current.set(key, entry);
    this.#endTooMany();
    return { entry, is_new: entry !== known };
  }

  #open(server: McpServer, { key, made_from }: Pick<Entry, "key" | "made_from">): Entry {
    this.#makeRoom(server);
    const entry: Entry = {
      server,
      key,
      made_from,
      users: 0,
      opening: openSession({
        who: {
          id: server.id,
          get label() {
            return entry.server.label;
          },
          secrets: secretsOf(server),
        },
        server: () => entry.server,
        incoming: () => this.#incoming(server.account),
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

  /** Closes the oldest unused session of an account that has its share, however many others there are. */
  #makeRoom({ account, label }: McpServer): void {
    const own = this.#held().filter((entry) => entry.server.account === account);
    if (own.length < this.#max_of_account) return;
    const oldest = this.#idle().find((entry) => entry.server.account === account);
    if (oldest) return this.#retire(oldest);
    const busy = own.length === 1 ? "1 of your tool servers is" : `${own.length} of your tool servers are`;
    throw new McpFault(
      `${label} was not asked: ${busy} at work, and an account may have no more at once. Try again when one has answered.`,
    );
  }

  /** Closes the oldest unused sessions of the accounts with the most, until the maximum is kept. */
  #endTooMany(): void {
    const held = this.#held();
    for (let excess = held.length - this.#max_sessions; excess > 0; excess -= 1) {
      const sums = new Map<string, number>();
      for (const { server } of this.#held()) sums.set(server.account, (sums.get(server.account) ?? 0) + 1);
      const sumOf = ({ server }: Entry): number => sums.get(server.account) ?? 0;
      const [first, ...others] = this.#idle();
      if (!first) return;
      this.#retire(others.reduce((most, entry) => (sumOf(entry) > sumOf(most) ? entry : most), first));
    }
  }

  /** Returns all sessions that are not about to end. */
  #held(): Entry[] {
    return [...this.#all].filter((entry) => entry.users > 0 || this.#current.get(entry.key) === entry);
  }

  /** Returns the sessions that nobody uses, the least recently used first. */
  #idle(): Entry[] {
    return [...this.#current.values()].filter(({ users }) => users === 0);
  }

  #leave(entry: Entry): void {
    entry.users -= 1;
    if (entry.users > 0) return;
    if (this.#current.get(entry.key) !== entry) return void this.#close(entry);
    entry.idle = setTimeout(() => this.#retire(entry), this.#idle_ms).unref();
    this.#endTooMany();
  }

  /** Closes a session to new users; current ones may continue. */
  #retire(entry: Entry): void {
    if (this.#current.get(entry.key) === entry) this.#current.delete(entry.key);
    if (entry.users === 0) void this.#close(entry);
  }

  async #close(entry: Entry): Promise<void> {
    clearTimeout(entry.idle);
    const session = await entry.opening.catch(() => undefined); // whoever waited for it was told
    await session?.close();
    this.#all.delete(entry);
  }
}

/** Returns the key of a session. Connections to the same program are equal: an account has one process of it. */
function keyOf(server: McpServer): string {
  return server.transport.kind === "http" ? server.id : JSON.stringify([server.account, originOf(server)]);
}

/** Returns everything that a session depends on except the token, which may change at any time. */
function originOf({ transport }: McpServer): string {
  return transport.kind === "http"
    ? JSON.stringify([transport.url, transport.headers, transport.identity])
    : JSON.stringify([transport.command, transport.args, transport.env]);
}

async function refuseUse({ transport }: McpServer): Promise<void> {
  const refusal = transport.kind === "stdio" ? await transport.refusal?.() : null;
  if (typeof refusal === "string") throw new McpFault(refusal);
}
