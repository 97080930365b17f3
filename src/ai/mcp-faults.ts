import { AppError, codeOf } from "../errors.ts";
import { PACKED } from "../net/guarded-fetch.ts";
import { MAX_DEPTH, MAX_PARTS } from "../lib/json-depth.ts";
import { NoHandlesError } from "../lib/own-faults.ts";
import { member } from "../lib/foreign-json.ts";
import { quote, errorTextOf } from "../lib/quote.ts";
import { networkFault, saysUndone, wasNeverSent } from "../net/responses.ts";
import { hideSecrets } from "./mcp-secrets.ts";

/** Words of servers that have lost a session; others answer 404. */
const SESSION_UNKNOWN = /session|not initialized/i;
const MAX_CAUSES = 5;

/** The server that a sentence is about, with its secrets, which must not be repeated. */
export interface Speaker {
  /** The id and the label of the connection. */
  id: string;
  label: string;
  /** Secrets that the server has got so far. */
  secrets: Set<string>;
}

interface FaultExtras {
  unheard?: boolean;
  undone?: boolean;
  status?: number;
}

/** Thrown when a tool server gave no answer: a sentence that names it, the cause and the mend. */
export class McpFault extends Error {
  /** The server has certainly not started the request, so repeating it is harmless. */
  readonly unheard: boolean;
  /** The server has certainly not carried out the request: it did not get it, or refused it. */
  readonly undone: boolean;
  /** The status of its HTTP answer, if there was one. */
  readonly status: number | undefined;

  constructor(message: string, { unheard = false, undone = false, status }: FaultExtras = {}) {
    super(message);
    this.name = "McpFault";
    this.unheard = unheard;
    this.undone = undone || unheard || (status !== undefined && saysUndone(status));
    this.status = status;
  }
}

/** Why there was no answer: the server's fault, or this machine's own. */
export type Why = McpFault | NoHandlesError;

/** Returns why the library, the network or a server failed. */
export function faultOf(who: Speaker, error: unknown): Why {
  const causes = causesOf(error);
  const known = causes.find((cause) => cause instanceof McpFault || cause instanceof NoHandlesError);
  if (known) return known;
  // Errors of this machine already have a message.
  const own = causes.find((cause) => cause instanceof AppError);
  if (own) return new McpFault(`${who.label}: ${own.message}`, { undone: true });
  const refused = causes.find((cause) => typeof member(cause, "status") === "number");
  if (refused)
    return refusalFault(who, Number(member(refused, "status")), member(member(refused, "data"), "text"));
  const failed = causes.find((cause) => member(cause, "name") === "ProtocolError");
  if (failed) return saidNo(who, failed);
  const local = causes.find((cause) => LOCAL_FAULTS[codeOf(cause)] !== undefined);
  if (local) return fault(who, LOCAL_FAULTS[codeOf(local)] ?? "");
  return fault(who, `${UNCLEAR}${said(who, member(error, "message"))}`);
}

/** Returns the fault for a network error; undefined for any other. Throws NoHandlesError. */
export function networkFaultOf(who: Speaker, error: unknown): McpFault | undefined {
  const found = networkFault(error);
  if (found === null) return undefined;
  if (found.code === "timeout" || found.code === "cancelled") return fault(who, TOO_SLOW);
  if (codeOf(error) === PACKED) return fault(who, `answers in a way that is not read. ${found.message}`);
  return fault(who, `could not be reached. ${found.message}`, { unheard: wasNeverSent(error) });
}

/** Returns the fault for a response with an error status. */
export function refusalFault(who: Speaker, status: number, text: unknown): McpFault {
  const body = typeof text === "string" ? text : "";
  const unheard = status === 404 || (status === 400 && SESSION_UNKNOWN.test(body));
  return fault(who, `(${status}) ${sentenceOf(status)}${said(who, errorTextOf(body))}`, { unheard, status });
}

export function fault(who: Speaker, sentence: string, extras: FaultExtras = {}): McpFault {
  return new McpFault(`${who.label} ${sentence}`, extras);
}

/** Returns the fault for a rejected or missing credential. */
export function needsAuth(who: Speaker, has_token: boolean): McpFault {
  const cause = has_token ? "does not accept the credential any more" : "asks for a credential";
  return fault(
    who,
    `${cause}. Connect it again on its page under “Connections”, or enter a valid credential there.`,
    { status: 401 },
  );
}

export const TOO_SLOW =
  "did not answer in time. If this lasts, ask for less or see whether the server is well.";
export const BROKE_OFF =
  "broke off before it answered, and may have done what it was asked. Look there before you ask again.";
export const TOO_LARGE =
  "sent more than 8 MB at once, or 16 MB or 10,000 events in one stream, so it was not heard out. Ask it for less.";
export const TOO_MANY_PARTS = `sent an answer with more than ${MAX_PARTS.toLocaleString("en")} parts, or more than ${MAX_DEPTH} levels, so it was not read. Ask it for less.`;
export const OTHER_FORM = "answered in a form that MCP does not know. Tell those who run it.";
const UNCLEAR =
  "answered with something that is not MCP. Check that the base URL is the one of its MCP interface.";

/** Errors that the library itself raises, by code. */
const LOCAL_FAULTS: Record<string, string> = {
  REQUEST_TIMEOUT: TOO_SLOW,
  CONNECTION_CLOSED: BROKE_OFF,
  NOT_CONNECTED: BROKE_OFF,
  UNSUPPORTED_RESULT_TYPE: "wants to ask somebody something first, which is not possible from here.",
  INVALID_RESULT: OTHER_FORM,
};

/** Returns the error and its causes, in the library's ways to wrap them. */
function causesOf(error: unknown): unknown[] {
  const causes = [error];
  for (const cause of causes) {
    const data = member(cause, "data");
    const behind = [
      member(cause, "cause"),
      data instanceof McpFault || data instanceof NoHandlesError ? data : undefined,
    ];
    if (causes.length < MAX_CAUSES) causes.push(...behind.filter((one) => one !== undefined));
  }
  return causes;
}

function sentenceOf(status: number): string {
  if (status < 400) return "redirects to another address. Enter the final one as its base URL.";
  if (status === 403) return "does not allow this. Check what the credential may do.";
  if (status === 404 || status === 405) return "has no MCP interface at this address. Check the base URL.";
  if (status === 429) return "is limiting requests. Try again later.";
  if (status >= 500) return "has a fault of its own. If it lasts, see its status page.";
  return "refused the request. Check the base URL and the headers of the connection.";
}

/**
 * Returns the fault for a JSON-RPC error. Only some codes mean that nothing was started: -32603, for instance, may also
 * follow completed work.
 */
function saidNo(who: Speaker, error: unknown): McpFault {
  const code = member(error, "code");
  const words = member(error, "message");
  // Some servers report invalid params for an answer of their own tool that does not fit their schema.
  const is_of_output =
    code === INVALID_PARAMS && typeof words === "string" && /output|structured/i.test(words);
  return fault(who, `answered with an error (${String(code)}).${said(who, words)}`, {
    undone: NOTHING_BEGUN.has(code) && !is_of_output,
  });
}

const INVALID_PARAMS = -32_602;
/**
 * Codes for a request that was not understood, unknown or invalid (JSON-RPC 2.0 §5.1), or needs a person first (MCP).
 */
const NOTHING_BEGUN = new Set<unknown>([-32_700, -32_600, -32_601, INVALID_PARAMS, -32_042]);

/** Returns a server's message in a form fit to show. */
function said(who: Speaker, words: unknown): string {
  const quoted = typeof words === "string" ? quote(hideSecrets(words, who.secrets), [...who.secrets]) : "";
  return quoted === "" ? "" : ` It said: ${quoted}`;
}
