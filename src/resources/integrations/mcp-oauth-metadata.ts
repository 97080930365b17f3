import { urlOf } from "../../lib/web-address.ts";
import type { App } from "../../app.ts";
import { member } from "../../lib/foreign-json.ts";
import { isSameSite } from "../../net/domain-owner.ts";
import type { Resource } from "./mcp-oauth-probe.ts";
import { askAt, judgedUrl, type Step, unavailable } from "./mcp-oauth-steps.ts";

const STEP: Step = "server_metadata";

/** What is needed of the metadata of an authorization server (RFC 8414 §2). */
export interface ServerMetadata {
  /** The issuer; null for a server without metadata. */
  issuer: string | null;
  names_itself: boolean;
  authorization_endpoint: string;
  token_endpoint: string;
  registration_endpoint: string | null;
  revocation_endpoint: string | null;
  token_auth_methods: string[];
  scopes: string[];
  /** Whether a client id may be the address of a document about the client. */
  takes_client_documents: boolean;
}

/** The authorization server of a resource: by its metadata or, if it has none, by the usual paths. */
export async function findServer(app: App, resource: Resource): Promise<ServerMetadata> {
  const issuer = resource.issuer ?? new URL(resource.id).origin;
  const url = new URL(await judgedUrl(app, STEP, issuer, "authorization server"));
  const found = await findDocument(app, url);
  if (found === undefined) return byCustom(url);
  const named = member(found, "issuer");
  const right =
    resource.issuer === null
      ? // The old way says where to look, and not what it is called there; another's name it must not take.
        typeof named === "string" && urlOf(named)?.origin === url.origin
      : withoutSlash(named) === withoutSlash(issuer);
  // Otherwise the codes of one server could be sent to another (RFC 8414 §3.3).
  if (!right) throw unavailable(STEP, "The authorization server's metadata is that of another server.");
  refuseUnfit(found);
  const server = await readMetadata(app, found, String(named));
  refuseForeignPage(server, [url, new URL(resource.id)]);
  return server;
}

/**
 * Looks for metadata at the addresses of RFC 8414 §3.1 and OpenID Connect Discovery §4, in the order of MCP
 * 2025-11-25.
 */
async function findDocument(app: App, issuer: URL): Promise<unknown> {
  const { origin } = issuer;
  const path = issuer.pathname.replace(/(?<!\/)\/+$/, "");
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  for (const place of new Set(places)) {
    const { status, json } = await askAt(app, STEP, place);
    if (status >= 500) throw unavailable(STEP, `The authorization server answered with status ${status}.`);
    if (status === 200 && member(json, "issuer") !== undefined) return json;
  }
  return undefined;
}

/** The endpoints of MCP 2025-03-26 for a server without metadata. */
function byCustom({ origin }: URL): ServerMetadata {
  return {
    issuer: null,
    names_itself: false,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    revocation_endpoint: null,
    token_auth_methods: [],
    scopes: [],
    takes_client_documents: false,
  };
}

function refuseUnfit(found: unknown): void {
  const lists = (name: string, value: string): boolean => textsOf(member(found, name)).includes(value);
  // MCP forbids a client to go on where a server does not say that it knows PKCE.
  if (!lists("code_challenge_methods_supported", "S256"))
    throw unavailable(
      STEP,
      "The authorization server does not say that it supports PKCE with S256, which MCP requires.",
    );
  const has = (name: string): boolean => member(found, name) !== undefined;
  const codes = !has("response_types_supported") || lists("response_types_supported", "code");
  if (!codes || (has("grant_types_supported") && !lists("grant_types_supported", "authorization_code")))
    throw unavailable(
      STEP,
      "The authorization server has no consent page for people (the authorization code grant).",
      "Enter a token of the server as the credential of this connection instead.",
    );
}

/**
 * Throws unless the consent page is at the host which named the token endpoint, or which is to be used. Otherwise a
 * server could have another one's page ask for consent, and get the code. The other endpoints may be anywhere, as
 * those of Google are.
 */
function refuseForeignPage({ authorization_endpoint }: ServerMetadata, own: URL[]): void {
  const page = new URL(authorization_endpoint);
  if (own.some((url) => isSameSite(url, page))) return;
  const hosts = [...new Set(own.map(({ host }) => host))].join(" or ");
  throw unavailable(
    STEP,
    `The authorization server's consent page is at ${page.host}, another site than ${hosts}: what you allow there could be taken by somebody else.`,
    "Enter a token of the server as the credential of this connection instead, or ask who runs it to name the authorization server of that page in its metadata.",
  );
}

async function readMetadata(app: App, found: unknown, issuer: string): Promise<ServerMetadata> {
  const endpoint = (name: string): Promise<string> => judgedUrl(app, STEP, member(found, name), name);
  const optional = async (name: string): Promise<string | null> =>
    member(found, name) === undefined ? null : endpoint(name);
  return {
    issuer,
    names_itself: member(found, "authorization_response_iss_parameter_supported") === true,
    authorization_endpoint: await endpoint("authorization_endpoint"),
    token_endpoint: await endpoint("token_endpoint"),
    registration_endpoint: await optional("registration_endpoint"),
    revocation_endpoint: await optional("revocation_endpoint"),
    token_auth_methods: textsOf(member(found, "token_endpoint_auth_methods_supported")),
    scopes: textsOf(member(found, "scopes_supported")),
    takes_client_documents: member(found, "client_id_metadata_document_supported") === true,
  };
}

function textsOf(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((entry) => typeof entry === "string") : [];
}

function withoutSlash(value: unknown): string {
  return String(value).replace(/\/$/, "");
}
