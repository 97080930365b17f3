import { member, parseJson } from "../../lib/foreign-json.ts";
import { errorTextOf } from "../../lib/quote.ts";
import { API_VERSION } from "../../lib/version.ts";
import {
  ask,
  type Finding,
  NOTHING_FOUND,
  notUnderstood,
  PingFault,
  type PingTarget,
  readEvents,
  readJson,
  said,
} from "./ping.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

/** The last revision with a handshake; a server picks the one it knows (MCP 2025-11-25, Lifecycle). */
const HANDSHAKE_VERSION = "2025-11-25";
/** The first revision without a handshake. */
const STATELESS_VERSION = "2026-07-28";
const CLIENT_INFO = { name: "mailwright", version: API_VERSION };
const MAX_TOOLS = 200;
const MAX_PAGES = 10;
const MAX_NAME_CHARS = 200;
const GOODBYE_MS = 2_000;

interface Call {
  id: number;
  method: string;
  params: Record<string, unknown>;
}

/** What the requests to a server need after the handshake. */
interface Session {
  result: unknown;
  headers: Record<string, string>;
  /** The `_meta` that the parameters of every request have. */
  meta: Record<string, unknown>;
  session_id: string | null;
}

/** Initializes a session, lists the tools, and ends the session, over Streamable HTTP. */
export async function pingMcp(target: PingTarget): Promise<Finding> {
  const session = await greet(target);
  try {
    const has_tools = member(member(session.result, "capabilities"), "tools") !== undefined;
    const tools = has_tools ? await listTools(target, session) : [];
    const detail = tools.length === 1 ? "1 tool" : `${tools.length} tools`;
    return { ...NOTHING_FOUND, detail, server_info: serverInfoOf(session.result), tools };
  } finally {
    if (session.session_id !== null) await endSession(target, session.headers);
  }
}

async function greet(target: PingTarget): Promise<Session> {
  try {
    return await initialize(target);
  } catch (error) {
    if (!(error instanceof PingFault) || !isRefusedGreeting(error)) throw error;
    try {
      return await discover(target);
    } catch (second) {
      throw second instanceof PingFault ? error : second;
    }
  }
}

/**
 * Whether a server refuses the handshake: one of a later revision answers 400 or 404, or an error of JSON-RPC (MCP
 * 2026-07-28, Versioning).
 */
function isRefusedGreeting(error: PingFault): boolean {
  const { code, http_status } = error.fault;
  return (
    error instanceof RpcFault || (code === "bad_response" && (http_status === 400 || http_status === 404))
  );
}

async function initialize(target: PingTarget): Promise<Session> {
  const params = { protocolVersion: HANDSHAKE_VERSION, capabilities: {}, clientInfo: CLIENT_INFO };
  const { result, response } = await call(target, { id: 1, method: "initialize", params });
  const version = member(result, "protocolVersion");
  if (typeof version !== "string") throw notUnderstood(target, response.status, "something else than MCP");
  const session_id = response.headers.get("mcp-session-id");
  const headers = {
    "mcp-protocol-version": version.replace(/[^\w.-]/g, ""),
    ...(session_id === null ? {} : { "mcp-session-id": session_id }),
  };
  const accepted = await post(target, { jsonrpc: "2.0", method: "notifications/initialized" }, headers);
  await accepted.body?.cancel();
  return { result, headers, meta: {}, session_id };
}

async function discover(target: PingTarget): Promise<Session> {
  const headers = { "mcp-protocol-version": STATELESS_VERSION };
  const meta = {
    _meta: {
      "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
      "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  };
  const { result } = await call(target, { id: 1, method: "server/discover", params: meta }, headers);
  return { result, headers, meta, session_id: null };
}

async function listTools(target: PingTarget, { headers, meta }: Session): Promise<string[]> {
  const names: string[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES && names.length < MAX_TOOLS; page += 1) {
    const params = cursor === undefined ? meta : { ...meta, cursor };
    const { result, response } = await call(target, { id: page + 2, method: "tools/list", params }, headers);
    const tools = member(result, "tools");
    if (!Array.isArray(tools)) throw notUnderstood(target, response.status, "no list of tools");
    names.push(...tools.map((tool) => member(tool, "name")).filter((name) => typeof name === "string"));
    cursor = member(result, "nextCursor");
    if (typeof cursor !== "string") break;
  }
  return names.slice(0, MAX_TOOLS).map((name) => name.slice(0, MAX_NAME_CHARS));
}

/**
 * Ends the session without a look at the answer: the verdict is there already, and a server forgets a session by
 * itself too (it may answer 405).
 */
async function endSession(target: PingTarget, headers: Record<string, string>): Promise<void> {
  const goodbye = { ...target, signal: timeoutSignal(GOODBYE_MS) };
  const credential = bearer(target);
  try {
    const response = await ask(goodbye, { url: target.base_url, method: "DELETE", credential, headers });
    await response.body?.cancel();
  } catch (error) {
    if (!(error instanceof PingFault)) throw error;
  }
}

/** An answer that is an error of JSON-RPC. */
class RpcFault extends PingFault {}

async function call(
  target: PingTarget,
  { id, method, params }: Call,
  headers: Record<string, string> = {},
): Promise<{ result: unknown; response: Response }> {
  const body = { jsonrpc: "2.0", id, method, params };
  const response = await post(target, body, { "mcp-method": method, ...headers });
  const answer = await answerTo(id, target, response);
  const error = member(answer, "error");
  if (error === undefined) return { result: member(answer, "result"), response };
  const words = said(target, errorTextOf(JSON.stringify(error)));
  throw new RpcFault("bad_response", `${target.name} refused ${method}.${words}`, response.status);
}

function post(target: PingTarget, body: object, headers: Record<string, string>): Promise<Response> {
  return ask(target, {
    url: target.base_url,
    method: "POST",
    credential: bearer(target),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify(body),
  });
}

function bearer(target: PingTarget): Record<string, string> {
  return { authorization: `Bearer ${target.credential}` };
}

/** The answer to a request. A server sends JSON, or a stream in which notifications may come first. */
async function answerTo(id: number, target: PingTarget, response: Response): Promise<unknown> {
  const isAnswer = (message: unknown): boolean => member(message, "id") === id;
  if (!/^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "")) {
    const found = [await readJson(target, response)].flat().find(isAnswer);
    if (found !== undefined) return found;
    throw notUnderstood(target, response.status, "something else than MCP");
  }
  for await (const data of readEvents(target, response)) {
    const found = [parseEvent(target, response, data)].flat().find(isAnswer);
    if (found !== undefined) {
      return found;
    }
  }
  throw notUnderstood(target, response.status, "a stream that ended without an answer");
}

function parseEvent(target: PingTarget, response: Response, data: string): unknown {
  const value = parseJson(data);
  if (value === undefined)
    throw notUnderstood(target, response.status, "a stream of something else than JSON");
  return value;
}

function serverInfoOf(result: unknown): { name: string; version: string } | null {
  const info =
    member(result, "serverInfo") ?? member(member(result, "_meta"), "io.modelcontextprotocol/serverInfo");
  const [name, version] = [member(info, "name"), member(info, "version")];
  if (typeof name !== "string") return null;
  return {
    name: name.slice(0, MAX_NAME_CHARS),
    version: typeof version === "string" ? version.slice(0, MAX_NAME_CHARS) : "",
  };
}
