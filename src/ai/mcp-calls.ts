import { member } from "../lib/foreign-json.ts";
import { fault, OTHER_FORM } from "./mcp-faults.ts";
import { isCallResult, outcomeOf } from "./mcp-results.ts";
import { hideSecrets } from "./mcp-secrets.ts";
import type { Session } from "./mcp-session.ts";
import { asSent, listedTool } from "./mcp-tools.ts";
import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import { NEVER_MS, timeoutError, timeoutSignal, waitLimit } from "../lib/wait-limit.ts";

const MAX_PAGES = 10;
const MAX_TOOLS = 200;
/** How many tools of one page are read; more are not even counted. */
const MAX_DESCRIBED = 5_000;

/** A tool as its server describes it. */
export type ListedTool = Omit<Tool, "target" | "foreign" | "call">;

export interface ToolList {
  tools: ListedTool[];
  /** The number of tools that could not be offered, or were too many. */
  left_out: number;
}

/** A schema that accepts any page (see `setResultsAside`). */
const ANYTHING = {
  "~standard": { version: 1, vendor: "mailwright", validate: (value: unknown) => ({ value }) },
} as const;

/** Returns the tools of a server. Throws McpFault, NoHandlesError, or the reason of `signal`. */
export async function fetchTools(session: Session, signal: AbortSignal): Promise<ToolList> {
  const { client, waits } = session;
  if (client.getServerCapabilities()?.tools === undefined) return { tools: [], left_out: 0 };
  const soon = AbortSignal.any([signal, timeoutSignal(waits.list_ms)]);
  try {
    const tools = new Map<string, ListedTool>();
    let described = 0;
    for await (const page of pagesOf(session, soon)) {
      described += page.length;
      // What is kept of a page is little: the next one may be as large again.
      for (const one of page) {
        const tool = tools.size < MAX_TOOLS && listedTool(withoutSecrets(one, session.who.secrets));
        if (tool && !tools.has(tool.name)) tools.set(tool.name, tool);
      }
      if (described > MAX_TOOLS) break;
    }
    return { tools: [...tools.values()], left_out: described - tools.size };
  } catch (error) {
    signal.throwIfAborted();
    throw session.faultOf(error);
  }
}

/** Reads a server's list page by page, until it repeats a page. */
async function* pagesOf({ client }: Session, signal: AbortSignal): AsyncGenerator<unknown[]> {
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const options = { signal, timeout: NEVER_MS };
    const page = asSent(await client.request({ method: "tools/list", params }, ANYTHING, options));
    const tools = member(page, "tools");
    yield Array.isArray(tools) ? (tools as unknown[]).slice(0, MAX_DESCRIBED) : [];
    const next = member(page, "nextCursor");
    if (typeof next !== "string" || next === cursor) break;
    cursor = next;
  }
}

/** Calls a tool; throws like `fetchTools`. Notifies the server when nobody waits for the answer any more. */
export async function callTool(
  { client, who, waits, faultOf }: Session,
  { name, parameters }: ListedTool,
  { args, signal }: { args: Record<string, unknown>; signal: AbortSignal },
): Promise<ToolOutcome> {
  const silence = new AbortController();
  const listen = () => waitLimit(waits.call_ms, () => silence.abort(timeoutError()));
  let limit = listen();
  const longest = timeoutSignal(waits.longest_call_ms);
  try {
    const result = await client.callTool(
      { name, arguments: args },
      {
        // Says which arguments are repeated in headers (MCP 2026-07-28).
        toolDefinition: { name, inputSchema: { ...parameters, type: "object" } },
        signal: AbortSignal.any([signal, longest, silence.signal]),
        timeout: NEVER_MS,
        onprogress: () => {
          limit.clear();
          limit = listen();
        },
      },
    );
    const sent = asSent(result) ?? result;
    if (!isCallResult(sent)) throw fault(who, OTHER_FORM);
    return outcomeOf(sent, who.secrets);
  } catch (error) {
    signal.throwIfAborted();
    throw faultOf(error);
  } finally {
    limit.clear();
  }
}

/** Returns a description without secrets; undefined when it is nested too deep to be searched. */
function withoutSecrets(described: unknown, secrets: Iterable<string>): unknown {
  try {
    const text = JSON.stringify(described);
    const clean = hideSecrets(text, secrets);
    return clean === text ? described : JSON.parse(clean);
  } catch {
    return undefined;
  }
}
