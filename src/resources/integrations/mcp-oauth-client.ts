import { isIP } from "node:net";
import type { App } from "../../app.ts";
import { type OAuthClient, openIfPossible } from "../connections/sealed.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { isPublicAddress } from "../../net/guarded-fetch.ts";
import { member, parseJson } from "../../lib/foreign-json.ts";
import { quote, errorTextOf } from "../../lib/quote.ts";
import { redirectUri } from "./connect.ts";
import type { ServerMetadata } from "./mcp-oauth-metadata.ts";
import { askAt, type Step, unavailable } from "./mcp-oauth-steps.ts";
import type { WireAnswer } from "./oauth-wire.ts";

const STEP: Step = "client_registration";
const CLIENT_NAME = "Mailwright";
const MAX_ID_CHARS = 2_048;
/** The characters of a client id (RFC 6749 §A.1). */
const CLIENT_ID = /^[\x20-\x7e]+$/;
const SINGLE_LABEL_OR_LOCAL = /^[^.]+$|\.(local|localhost|internal|lan|home\.arpa|test|example|invalid)$/;
const AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"] as const;

type AuthMethod = OAuthClient["auth"];

/**
 * The client that this server is at an authorization server: registered by hand, named by a document about it, or
 * registered now.
 */
export async function findClient(
  app: App,
  row: ConnectionRow,
  server: ServerMetadata,
  scope: string | null,
): Promise<OAuthClient> {
  const byHand = registeredByHand(app, row, server);
  if (byHand) return byHand;
  if (server.takes_client_documents && isReachable(app))
    return { id: clientDocumentUrl(app), secret: null, auth: "none", registered_for: null };
  return registeredBefore(app, row, server) ?? register(app, server, scope);
}

/** The document by which this server names itself as a client; undefined where nobody on the internet could read it. */
export function clientDocument(app: App): Record<string, unknown> | undefined {
  return isReachable(app) ? { client_id: clientDocumentUrl(app), ...aboutUs(app, "none") } : undefined;
}

function clientDocumentUrl(app: App): string {
  return `${app.base_url}/integrations/mcp/client-metadata.json`;
}

function isReachable(app: App): boolean {
  const { protocol, hostname } = new URL(app.base_url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const known = isIP(host) === 0 ? !SINGLE_LABEL_OR_LOCAL.test(host) : isPublicAddress(host);
  return protocol === "https:" && known;
}

function aboutUs(app: App, auth: AuthMethod): Record<string, unknown> {
  return {
    client_name: CLIENT_NAME,
    client_uri: app.base_url,
    redirect_uris: [redirectUri(app, "mcp")],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: auth,
  };
}

function registeredByHand(app: App, row: ConnectionRow, server: ServerMetadata): OAuthClient | undefined {
  const config = row.config === null ? undefined : parseJson(row.config);
  const id = member(config, "client_id");
  if (id === undefined) return undefined;
  if (!isClientId(id))
    throw unavailable(
      STEP,
      "What this connection has for the id of its OAuth client is none (`config.client_id`).",
    );
  const secret = openIfPossible(app, row)?.client_secret ?? null;
  if (secret === null) return { id, secret, auth: "none", registered_for: null };
  // The MCP server names its authorization server, so a secret goes only to the issuer that its owner named.
  if (member(config, "issuer") !== server.issuer || server.issuer === null)
    throw unavailable(
      STEP,
      `The client secret of this connection is not sent to ${quote(server.issuer ?? "a server without a name", [secret])} before you say that it belongs there.`,
      "If you registered the client there, set that address in this connection (`config.issuer`).",
    );
  return { id, secret, auth: secretMethod(server), registered_for: null };
}

/** The client that was registered before, so that it is not done a second time. */
function registeredBefore(app: App, row: ConnectionRow, server: ServerMetadata): OAuthClient | undefined {
  const oauth = openIfPossible(app, row)?.oauth;
  const known = oauth?.server;
  if (!oauth || !known || oauth.ended || row.status !== "ok") return undefined;
  const same = server.issuer !== null && known.issuer === server.issuer;
  return same && known.client.registered_for === redirectUri(app, "mcp") ? known.client : undefined;
}

/** Registers this server as a client (RFC 7591). */
async function register(app: App, server: ServerMetadata, scope: string | null): Promise<OAuthClient> {
  const endpoint = server.registration_endpoint;
  if (endpoint === null)
    throw unavailable(
      STEP,
      "The authorization server registers no clients by itself.",
      "Register a client there by hand, and set its id in this connection (`config.client_id`).",
    );
  const offered = server.token_auth_methods;
  const auth = offered.length === 0 || offered.includes("none") ? "none" : secretMethod(server);
  const send = (about: object): Promise<WireAnswer> =>
    askAt(app, STEP, endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(about),
    });
  const about = aboutUs(app, auth);
  const first = await send(scope === null ? about : { ...about, scope });
  const answer = first.status === 400 && scope !== null ? await send(about) : first;
  return clientIn(app, answer, auth);
}

function clientIn(app: App, { status, text, json }: WireAnswer, asked: AuthMethod): OAuthClient {
  const id = member(json, "client_id");
  if (status >= 300 || !isClientId(id)) {
    const words = status >= 300 ? ` It said: ${quote(errorTextOf(text), [])}` : "";
    throw unavailable(
      STEP,
      `The authorization server registered no client for this server (status ${status}).${words}`,
      "Register a client there by hand, and set its id in this connection (`config.client_id`).",
    );
  }
  const given = member(json, "client_secret");
  const secret = typeof given === "string" && given !== "" ? given : null;
  const said = AUTH_METHODS.find((method) => method === member(json, "token_endpoint_auth_method"));
  const auth = said ?? (secret === null || asked !== "none" ? asked : "client_secret_basic");
  return { id, secret, auth: secret === null ? "none" : auth, registered_for: redirectUri(app, "mcp") };
}

function isClientId(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_ID_CHARS && CLIENT_ID.test(value);
}

/** How the client authenticates itself: by Basic where the server does not say (RFC 8414 §2). */
function secretMethod({ token_auth_methods: offered }: ServerMetadata): AuthMethod {
  const basic = offered.length === 0 || offered.includes("client_secret_basic");
  return basic ? "client_secret_basic" : "client_secret_post";
}
