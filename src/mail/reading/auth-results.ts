import { domainOf, inSameHands } from "../../net/domain-owner.ts";

/** The result of one method, such as `dkim=pass header.d=example.com`; all but the values in lower case. */
export interface MethodResult {
  method: string;
  result: string;
  /** Properties by `ptype.property`. */
  properties: Map<string, string>;
}

export interface AuthResults {
  /** The name of the server that checked, in lower case. */
  authserv_id: string;
  results: MethodResult[];
}

/** The results of another server for the domain of a mail's author. */
export interface Findings {
  dkim: { result: string; aligned: string[] };
  spf: { result: string; aligned: string[]; sender: string };
}

/** Parses an Authentication-Results field (RFC 8601 §2.2); undefined when it is malformed. */
export function readAuthResults(value: string): AuthResults | undefined {
  const parts = splitParts(value);
  const [id = "", ...rest] = parts ?? [];
  // A version may follow the name (RFC 8601 §2.2).
  const authserv_id = /^\s*("[^"]+"|[^\s"=]+)(?:\s+\d+)?\s*$/.exec(id)?.[1];
  if (authserv_id === undefined) return undefined;
  return {
    authserv_id: authserv_id.replaceAll('"', "").toLowerCase(),
    results: rest.map(readResult).filter((result) => result !== undefined),
  };
}

/** Parses ARC-Authentication-Results, which begins with the number of its set (RFC 8617 §4.1.1). */
export function readArcResults(value: string): AuthResults | undefined {
  return readAuthResults(value.replace(/^[^;]*;/, ""));
}

/**
 * Returns the results that say `pass` for a domain of the same owner as the author's. The caller decides whether they
 * suffice.
 */
export function findingsOf(all: AuthResults[], from_domain: string): Findings {
  const results = all.flatMap((one) => one.results);
  // A server that reports a DMARC failure cannot also report a proof: a client's text in a comment may imitate one.
  const is_forged = results.some(({ method, result }) => method === "dmarc" && result === "fail");
  const ours = (domain: string): boolean => !is_forged && inSameHands(domain, from_domain);
  const dkim = results.filter(({ method }) => method === "dkim");
  const spf = spfResult(results);
  const sender = domainOf(spf.sender);
  return {
    dkim: {
      result: dkim.find(isPass)?.result ?? dkim[0]?.result ?? "none",
      aligned: dkim.filter(isPass).map(signer).filter(ours),
    },
    spf: { ...spf, aligned: spf.result === "pass" && ours(sender) ? [sender] : [] },
  };
}

function isPass({ result }: MethodResult): boolean {
  return result === "pass";
}

function signer({ properties }: MethodResult): string {
  return properties.get("header.d") ?? domainOf(properties.get("header.i") ?? "");
}

/** Returns the SPF result. The HELO name counts only where the envelope has no sender (RFC 7208 §2.4). */
function spfResult(results: MethodResult[]): { result: string; sender: string } {
  const all = results.filter(({ method }) => method === "spf");
  const named = all.map(({ result, properties }) => ({
    result,
    sender: properties.get("smtp.mailfrom")?.replace(/^<(.*)>$/, "$1") ?? "",
  }));
  const byEnvelope = named.find(({ sender }) => sender !== "");
  if (byEnvelope) return byEnvelope;
  const [first] = all;
  return { result: first?.result ?? "none", sender: first?.properties.get("smtp.helo") ?? "" };
}

const METHOD = /\s*([a-z][a-z0-9_-]*)(?:\s*\/\s*\d+)?\s*=\s*([a-z][a-z0-9_-]*)(?=\s|$)/iy;
const PROPERTY =
  /\s*([a-z][a-z0-9_-]*(?:\s*\.\s*[a-z0-9_-]+)?)\s*=\s*("(?:[^"\\]|\\.)*"(?:@[^\s"]+)?|[^\s"]+)(?=\s|$)/iy;

function readResult(text: string): MethodResult | undefined {
  METHOD.lastIndex = 0;
  const [, method, result] = METHOD.exec(text) ?? [];
  if (method === undefined || result === undefined) return undefined;
  const properties = new Map<string, string>();
  PROPERTY.lastIndex = METHOD.lastIndex;
  for (let found = PROPERTY.exec(text); found; found = PROPERTY.exec(text)) {
    const name = found[1]?.replaceAll(/\s/g, "").toLowerCase() ?? "";
    // A property that is named twice counts as empty: nobody knows which one was meant.
    properties.set(name, properties.has(name) ? "" : unquoted(found[2] ?? ""));
  }
  return { method: method.toLowerCase(), result: result.toLowerCase(), properties };
}

/** Returns a value without its quotes. In an address with a quoted local part (RFC 8601 §2.2) they stay. */
function unquoted(value: string): string {
  return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;
}

/**
 * Returns the parts of a value between semicolons, without comments; undefined if a quote or a comment is not closed.
 */
function splitParts(value: string): string[] | undefined {
  const parts = [""];
  for (let at = 0; at < value.length;) {
    const end = endOfPiece(value, at);
    if (end === undefined) return undefined;
    const piece = value.slice(at, end);
    if (piece === ";") parts.push("");
    else parts.push((parts.pop() ?? "") + (piece.startsWith("(") ? " " : piece));
    at = end;
  }
  return parts;
}

/** Returns the position behind the comment, the quoted string or the character at `at`. */
function endOfPiece(value: string, at: number): number | undefined {
  if (value[at] === "(") return endOfComment(value, at);
  if (value[at] !== '"') return at + 1;
  QUOTED.lastIndex = at;
  return QUOTED.test(value) ? QUOTED.lastIndex : undefined;
}

const QUOTED = /"(?:[^"\\]|\\.)*"/y;

/**
 * Returns the position behind a comment: comments nest, and a backslash escapes the next character (RFC 5322 §3.2.2).
 */
function endOfComment(value: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < value.length; at++) {
    const char = value[at];
    if (char === "\\") at++;
    else if (char === "(") depth++;
    else if (char === ")" && --depth === 0) return at + 1;
  }
  return undefined;
}
