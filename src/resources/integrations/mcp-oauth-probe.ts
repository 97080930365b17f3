import { urlOf } from "../../lib/web-address.ts";
import type { App } from "../../app.ts";
import { openIfPossible } from "../connections/sealed.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { member } from "../../lib/foreign-json.ts";
import { API_VERSION } from "../../lib/version.ts";
import { askAt, onTheWay, unavailable } from "./mcp-oauth-steps.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

const HANDSHAKE_VERSION = "2025-11-25";
const PROBE_TIMEOUT_MS = 10_000;
const INITIALIZE = {
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: HANDSHAKE_VERSION,
    capabilities: {},
    clientInfo: { name: "mailwright", version: API_VERSION },
  },
};
const LIST_TOOLS = { id: 2, method: "tools/list" };
/** One or more scopes (RFC 6749 §3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e ]{1,2000}$/;

/** What an MCP server says of its authorisation (RFC 9728 §2). */
export interface Resource {
  /** The name that the server gives itself; its address where it gives none. */
  id: string;
  /**
   * The issuer of its authorization server; null for the old way, in which the MCP server's own origin is that server
   * (MCP 2025-03-26).
   */
  issuer: string | null;
  scope: string | null;
}

interface Challenge {
  metadata_url: string | null;
  scope: string | null;
}

/** Asks an MCP server which authorisation it wants. */
export async function findResource(app: App, row: ConnectionRow): Promise<Resource> {
  const server = new URL(row.base_url ?? "");
  const challenge = await challengeOf(app, row, server);
  const metadata = await findMetadata(app, server, challenge);
  if (metadata === undefined) {
    const { href } = server;
    return { id: server.pathname === "/" ? server.origin : href, issuer: null, scope: challenge.scope };
  }
  const { resource } = metadata;
  if (!covers(resource, server))
    throw unavailable(
      "resource_metadata",
      "The server's OAuth metadata speaks of another server, so no access is asked for in its name.",
      "Check that the address of the connection is the server's own (`base_url`).",
    );
  const issuer: unknown = [metadata.authorization_servers].flat()[0];
  return {
    id: resource,
    issuer: typeof issuer === "string" ? issuer : null,
    scope: challenge.scope ?? scopeOf(metadata.scopes),
  };
}

/** The challenge of a server that wants authorisation (RFC 9728 §5.1). */
async function challengeOf(app: App, row: ConnectionRow, server: URL): Promise<Challenge> {
  const headers = ownHeaders(app, row);
  const greeting = await post(app, server, { headers, message: INITIALIZE });
  // Some servers let everybody initialize a session, and challenge the first request in it.
  const answer = greeting.ok ? await listTools(app, server, headers, greeting) : greeting;
  if (isChallenge(answer)) return challengeIn(answer.headers);
  if (greeting.ok)
    throw unavailable(
      "probe",
      "The server lets everybody in without authorisation, so there is nothing to connect: use it as it is.",
    );
  // The transport before Streamable HTTP begins with a GET.
  const stream = await askHeaders(app, server, { headers: { ...headers, accept: "text/event-stream" } });
  if (isChallenge(stream)) return challengeIn(stream.headers);
  throw unavailable(
    "probe",
    `The server answered with status ${greeting.status} and not with a request for authorisation.`,
    "Check the address of the connection, and test it (`POST /connections/{connection_id}/test`).",
  );
}

/** The headers of the connection without its credential: a valid one would hide the challenge. */
function ownHeaders(app: App, row: ConnectionRow): Record<string, string> {
  const headers = openIfPossible(app, row)?.headers ?? {};
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "authorization"),
  );
}

async function listTools(
  app: App,
  server: URL,
  headers: Record<string, string>,
  greeting: Response,
): Promise<Response> {
  const session = greeting.headers.get("mcp-session-id");
  const inside = {
    ...headers,
    "mcp-protocol-version": HANDSHAKE_VERSION,
    ...(session === null ? {} : { "mcp-session-id": session }),
  };
  const answer = await post(app, server, { headers: inside, message: LIST_TOOLS });
  if (session !== null) await askHeaders(app, server, { method: "DELETE", headers: inside });
  return answer;
}

function post(
  app: App,
  server: URL,
  { headers, message }: { headers: Record<string, string>; message: object },
): Promise<Response> {
  const spoken = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return askHeaders(app, server, {
    method: "POST",
    headers: { ...headers, ...spoken },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });
}

/** Sends a request for the headers of its answer; the body is not read, as it may be a stream without an end. */
async function askHeaders(app: App, server: URL, init: RequestInit): Promise<Response> {
  const signal = timeoutSignal(PROBE_TIMEOUT_MS);
  return onTheWay("probe", async () => {
    const response = await app.fetch(server, { ...init, signal });
    await response.body?.cancel();
    return response;
  });
}

function isChallenge({ status, headers }: Response): boolean {
  return status === 401 || (status === 403 && headers.has("www-authenticate"));
}

function challengeIn(headers: Headers): Challenge {
  const header = headers.get("www-authenticate") ?? "";
  return {
    metadata_url: valueIn(RESOURCE_METADATA.exec(header)),
    scope: scopeOf(valueIn(SCOPE_PARAMETER.exec(header))),
  };
}

/** Parameters of a challenge (RFC 9110 §11.2): `name="quoted"` or `name=token`. */
const RESOURCE_METADATA = /[\s,]resource_metadata\s*=\s*(?:"([^"]*)"|([^\s",]+))/i;
const SCOPE_PARAMETER = /[\s,]scope\s*=\s*(?:"([^"]*)"|([^\s",]+))/i;

function valueIn(found: RegExpExecArray | null): string | null {
  return found?.[1] ?? found?.[2] ?? null;
}

interface ResourceMetadata {
  resource: string;
  authorization_servers: unknown;
  scopes: unknown;
}

/** The metadata of a resource (RFC 9728 §3.1 and §5.1); undefined where there is none. */
async function findMetadata(
  app: App,
  server: URL,
  challenge: Challenge,
): Promise<ResourceMetadata | undefined> {
  const path = server.pathname.replace(/(?<!\/)\/+$/, "");
  const root = `${server.origin}/.well-known/oauth-protected-resource`;
  const places = [challenge.metadata_url, `${root}${path}`, root].filter((place) => place !== null);
  for (const place of new Set(places)) {
    const { status, json } = await askAt(app, "resource_metadata", place);
    if (status >= 500)
      throw unavailable("resource_metadata", `Its OAuth metadata is there, but it answers ${status}.`);
    const resource = member(json, "resource");
    if (status !== 200 || typeof resource !== "string") continue;
    return {
      resource,
      authorization_servers: member(json, "authorization_servers"),
      scopes: member(json, "scopes_supported"),
    };
  }
  return undefined;
}

/**
 * Whether metadata is about a server. RFC 9728 §3.3 wants the same address; in practice one document also speaks for
 * all paths below its own.
 */
function covers(resource: string, server: URL): boolean {
  const url = urlOf(resource);
  if (!url || url.origin !== server.origin || url.username + url.password + url.hash !== "") return false;
  const path = url.pathname.replace(/(?<!\/)\/+$/, "");
  return server.pathname === path || server.pathname.startsWith(`${path}/`);
}

function scopeOf(said: unknown): string | null {
  const scope = Array.isArray(said) ? said.join(" ") : said;
  return typeof scope === "string" && SCOPE.test(scope) ? scope : null;
}
