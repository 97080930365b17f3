import { createIncoming } from "../net/incoming.ts";
import type { SafeFetch } from "../net/guarded-fetch.ts";
import { callTool, fetchTools, type ListedTool } from "./mcp-calls.ts";
import { McpFault } from "./mcp-faults.ts";
import { type PoolOptions, SessionPool } from "./mcp-pool.ts";
import type { ServerInfo, Session } from "./mcp-session.ts";
import type { Tool, ToolListing, ToolOutcome } from "../trust/guard/tool.ts";

const LIST_KEPT_MS = 300_000;
/** How many answers of more than 256 KB are held at once, of all tool servers. */
const LARGE_ANSWERS = 8;

/** A tool server as described by a connection. */
export interface McpServer {
  /** The id of the connection. Each has its own session, except for programs, of which an account has one process. */
  id: string;
  /** The account of the connection; no account has more than a share of all sessions. */
  account: string;
  /** Its name for people. */
  label: string;
  /** Its name in an instruction: `mcp:calendar`. */
  target: string;
  transport: HttpTransport | StdioTransport;
}

export interface HttpTransport {
  kind: "http";
  url: string;
  headers: Record<string, string>;
  /**
   * Identifies the credential in use, unless it is a token that changes by itself; another one needs another session.
   */
  identity?: string;
  /** Returns the bearer token to send, null for none. `refused` is one that the server has just rejected. */
  token: (refused?: string) => Promise<string | null>;
  fetch: SafeFetch;
}

/** A program of this machine that the operator allows (`[mcp.stdio.NAME]`). */
export interface StdioTransport {
  kind: "stdio";
  command: string;
  args: string[];
  /** Its complete environment. */
  env: Record<string, string>;
  /** Its working directory; by default that of this process. */
  cwd?: string;
  /** Called before each use. Returns a sentence if its account may not use it (any more), otherwise null. */
  refusal?: () => Promise<string | null>;
}

/** A server's name, version and tools, or a sentence on why there are none. */
export type McpFinding =
  | { ok: true; server_info: ServerInfo | null; tools: string[] }
  | { ok: false; message: string };

/** Sessions with tool servers, kept open between runs. */
export interface McpPool extends AsyncDisposable {
  /**
   * Lists a server's tools, with `anew` as they are now and otherwise as they were a few minutes ago; faults are part of the
   * result. Rejects when `signal` aborts, and with NoHandlesError.
   */
  listTools(server: McpServer, signal: AbortSignal, anew?: boolean): Promise<ToolListing>;
  /** Asks a server for its tools without the cache. */
  inspect(server: McpServer, signal: AbortSignal): Promise<McpFinding>;
}

export interface McpPoolOptions extends Partial<PoolOptions> {
  nowMs?: () => number;
}

export function createMcpPool({ nowMs = Date.now, ...options }: McpPoolOptions = {}): McpPool {
  const sessions = new SessionPool({ incoming: createIncoming(LARGE_ANSWERS), ...options });
  return {
    async listTools(server, signal, anew = false) {
      return outcomeOf(signal, async () => {
        const { tools, left_out } = await sessions.use(
          { server, signal, repeatable: true },
          async (session, entry) => {
            if (anew || entry.list === undefined || entry.list.until <= nowMs())
              entry.list = { ...(await fetchTools(session, signal)), until: nowMs() + LIST_KEPT_MS };
            return entry.list;
          },
        );
        return { ok: true, tools: tools.map((tool) => toolOf(sessions, server, tool)), left_out };
      });
    },
    inspect(server, signal) {
      return outcomeOf(signal, () =>
        sessions.use({ server, signal, repeatable: true }, async (session) => {
          const { tools } = await fetchTools(session, signal);
          return { ok: true, server_info: session.server_info, tools: tools.map(({ name }) => name) };
        }),
      );
    },
    [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose](),
  };
}

function toolOf(sessions: SessionPool, server: McpServer, tool: ListedTool): Tool {
  return {
    target: server.target,
    ...tool,
    foreign: true,
    async call(args, signal) {
      // Widened, since the compiler does not see that `call` sets it.
      let asked = false as boolean;
      const call = (session: Session): Promise<ToolOutcome> => {
        asked = true;
        return callTool(session, tool, { args, signal });
      };
      try {
        signal.throwIfAborted();
        return await sessions.use({ server, signal, repeatable: false }, call);
      } catch (error) {
        const { message, undone } = faultIn(error, signal);
        const unanswered = asked && !undone ? { unanswered: true } : {};
        return { ok: false, text: message, files: [], of_server: true, ...unanswered };
      }
    },
  };
}

/** Turns a server's fault into an answer. */
async function outcomeOf<T>(
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T | { ok: false; message: string }> {
  try {
    signal.throwIfAborted();
    return await work();
  } catch (error) {
    return { ok: false, message: faultIn(error, signal).message };
  }
}

function faultIn(error: unknown, signal: AbortSignal): McpFault {
  signal.throwIfAborted();
  if (!(error instanceof McpFault)) throw error;
  return error;
}
