import type { SafeFetch } from "../lib/net.ts";
import type { ToolListing } from "./tool.ts";

/** One tool server, as a connection means it. */
export interface McpServer {
  /** Of the connection: each has a session of its own. */
  id: string;
  /** For people. */
  label: string;
  /** As an instruction names it: `mcp:calendar`. */
  target: string;
  transport: HttpTransport | StdioTransport;
}

export interface HttpTransport {
  kind: "http";
  url: string;
  headers: Record<string, string>;
  /** The bearer token to send, null for none; `refused` is one that the server has just turned down. */
  token: (refused?: string) => Promise<string | null>;
  fetch: SafeFetch;
}

/** A program of this machine that the operator allows (`[mcp.stdio.NAME]`). */
export interface StdioTransport {
  kind: "stdio";
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** Sessions with tool servers, kept open between runs. */
export interface McpPool extends AsyncDisposable {
  /** What a server offers; whatever is wrong with it is in the answer. Rejects only when `signal` aborts. */
  listTools(server: McpServer, signal: AbortSignal): Promise<ToolListing>;
}

export function createMcpPool(): McpPool {
  return {
    listTools: () => Promise.resolve({ ok: false, message: "" }),
    async [Symbol.asyncDispose]() {},
  };
}
