import type { AuthorizationServer, ClientAuth, TokenEndpointResponse } from "oauth4webapi";
import type { App } from "../../app.ts";
import { isSendable, type OAuthServer } from "../connections/sealed.ts";
import { member } from "../../lib/foreign-json.ts";
import { quote } from "../../lib/quote.ts";
import { networkFault } from "../../net/responses.ts";
import { askServer } from "./oauth-wire.ts";

const MAX_TOKEN_CHARS = 16_384;
/** Errors of RFC 6749 §5.2 and its extensions that may be gone at the next try. */
const PASSING_ERRORS = new Set(["temporarily_unavailable", "server_error", "slow_down"]);
const PASSING_STATUS = new Set([408, 425, 429]);

export interface Tokens {
  access_token: string;
  /** The new refresh token; null if the old one stays valid. */
  refresh_token: string | null;
  /** When the token ends, in unix seconds; null if the server does not say. */
  expires_at: number | null;
  /** The whole answer of the token endpoint. */
  said: unknown;
}

/** `refused`: asking again with the same code or token is of no use. */
export type TokenOutcome = { ok: true; tokens: Tokens } | { ok: false; refused: boolean; message: string };

interface Returned {
  code: string;
  verifier: string;
  redirect_uri: string;
  iss: string | undefined;
}

/** The address of the consent page, with the secrets that its round trip needs. */
export async function consentUrl(
  server: OAuthServer,
  redirect_uri: string,
  extra: Record<string, string> = {},
): Promise<{ url: string; state: string; verifier: string }> {
  const oauth = await library();
  const state = oauth.generateRandomState();
  const verifier = oauth.generateRandomCodeVerifier();
  const url = new URL(server.authorization_endpoint);
  const parameters = {
    response_type: "code",
    client_id: server.client.id,
    redirect_uri,
    state,
    scope: server.scope,
    resource: server.resource,
    code_challenge: server.pkce ? await oauth.calculatePKCECodeChallenge(verifier) : null,
    code_challenge_method: server.pkce ? "S256" : null,
    ...extra,
  };
  for (const [name, value] of Object.entries(parameters))
    if (value !== null) url.searchParams.set(name, value);
  return { url: url.href, state, verifier };
}

/** Exchanges the code that a browser brought back for tokens (RFC 6749 §4.1.3). */
export async function exchangeCode(app: App, server: OAuthServer, returned: Returned): Promise<TokenOutcome> {
  const oauth = await library();
  const as = asMetadata(server);
  const client = { client_id: server.client.id };
  const parameters = new URLSearchParams({ code: returned.code });
  // The issuer is checked (RFC 9207). An authorization server without metadata is named by its origin; a configured
  // provider has no name to check.
  const named = server.issuer !== null || server.resource !== null;
  if (named && returned.iss !== undefined) parameters.set("iss", returned.iss);
  return outcomeOf(app, server, [returned.code], async () => {
    const checked = oauth.validateAuthResponse(as, client, parameters, oauth.skipStateCheck);
    const response = await oauth.authorizationCodeGrantRequest(
      as,
      client,
      authOf(server),
      checked,
      returned.redirect_uri,
      server.pkce ? returned.verifier : oauth.nopkce,
      await requestOptions(app, server),
    );
    return oauth.processAuthorizationCodeResponse(as, client, response);
  });
}

export async function refreshTokens(
  app: App,
  server: OAuthServer,
  refresh_token: string,
): Promise<TokenOutcome> {
  const oauth = await library();
  const as = asMetadata(server);
  const client = { client_id: server.client.id };
  return outcomeOf(app, server, [refresh_token], async () => {
    const options = await requestOptions(app, server);
    const response = await oauth.refreshTokenGrantRequest(as, client, authOf(server), refresh_token, options);
    return oauth.processRefreshTokenResponse(as, client, response);
  });
}

/** Revokes a token (RFC 7009). Throws what the library and the network throw. */
export async function revokeAt(
  app: App,
  server: OAuthServer & { revocation_endpoint: string },
  { token, signal }: { token: string; signal: AbortSignal },
): Promise<void> {
  const oauth = await library();
  const client = { client_id: server.client.id };
  const options = { ...(await requestOptions(app, server)), signal };
  const response = await oauth.revocationRequest(asMetadata(server), client, authOf(server), token, options);
  await oauth.processRevocationResponse(response);
}

/** Loads the library at first use: many servers never need it. */
function library() {
  return import("oauth4webapi");
}

function asMetadata(server: OAuthServer): AuthorizationServer {
  return {
    issuer: server.issuer ?? new URL(server.token_endpoint).origin,
    token_endpoint: server.token_endpoint,
    ...(server.revocation_endpoint === null ? {} : { revocation_endpoint: server.revocation_endpoint }),
    authorization_response_iss_parameter_supported: server.names_itself,
  };
}

/**
 * How a client authenticates itself, in the form that servers take: RFC 6749 §2.3.1 wants the id and the secret
 * encoded, yet few servers decode more than they must.
 */
function authOf({ client }: OAuthServer): ClientAuth {
  return (_as, _client, body, headers) => {
    if (client.auth === "client_secret_basic") {
      const pair = `${encodeURIComponent(client.id)}:${encodeURIComponent(client.secret ?? "")}`;
      headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`);
      return;
    }
    body.set("client_id", client.id);
    if (client.auth === "client_secret_post") body.set("client_secret", client.secret ?? "");
  };
}

async function requestOptions(app: App, server: OAuthServer) {
  const oauth = await library();
  return {
    // Allowed, because `app.fetch` decides which hosts may do without https.
    [oauth.allowInsecureRequests]: true,
    [oauth.customFetch]: (url: string, request: Composed) => send(app, server, url, request),
    ...(server.resource === null ? {} : { additionalParameters: { resource: server.resource } }),
  };
}

/** A request in the form in which the library makes it. */
interface Composed {
  headers: Record<string, string>;
  body: URLSearchParams;
  signal?: AbortSignal | undefined;
}

/** Sends what the library composed, and returns an answer in the form that the RFCs want. */
async function send(
  app: App,
  { format }: OAuthServer,
  url: string,
  { headers, body, signal }: Composed,
): Promise<Response> {
  const json = format === "json";
  const answer = await askServer(app, url, {
    method: "POST",
    headers: json ? { ...headers, "content-type": "application/json" } : headers,
    body: json ? JSON.stringify(Object.fromEntries(body)) : body.toString(),
    ...(signal ? { signal } : {}),
  });
  if (typeof answer.json !== "object" || answer.json === null)
    return new Response(answer.text, { status: answer.status });
  // GitHub answers an error with status 200; other servers answer a token with 201.
  const bad = answer.status < 300 && typeof member(answer.json, "error") === "string";
  const status = answer.status === 201 ? 200 : bad ? 400 : answer.status;
  return new Response(JSON.stringify(withoutNoise(answer.json)), {
    status,
    headers: { "content-type": "application/json" },
  });
}

/**
 * The answer without members that are null, or that are not used: who the account is, is asked with the token, and
 * never taken from an id_token.
 */
function withoutNoise(json: object): object {
  const members = Object.entries(json).filter(
    ([name, value]) => value !== null && name !== "id_token" && name !== "scope",
  );
  return Object.fromEntries(members);
}

async function outcomeOf(
  app: App,
  server: OAuthServer,
  secrets: string[],
  grant: () => Promise<TokenEndpointResponse>,
): Promise<TokenOutcome> {
  try {
    const said = await grant();
    return tokensOf(app, said);
  } catch (error) {
    return faultOf(error, [...secrets, server.client.secret ?? ""]);
  }
}

function tokensOf(app: App, said: TokenEndpointResponse): TokenOutcome {
  const { access_token, refresh_token, expires_in, token_type } = said;
  const usable = access_token.length <= MAX_TOKEN_CHARS && isSendable(access_token);
  if (!usable || token_type !== "bearer")
    return {
      ok: false,
      refused: true,
      message: "The token in its answer is of a kind that is not known here.",
    };
  return {
    ok: true,
    tokens: {
      access_token,
      refresh_token: refresh_token ?? null,
      // Some servers write 0 for a token without an end.
      expires_at: expires_in === undefined || expires_in <= 0 ? null : app.now() + Math.floor(expires_in),
      said,
    },
  };
}

/** An error of the network or the server as an outcome with a sentence; any other error is ours, and thrown. */
function faultOf(error: unknown, secrets: string[]): TokenOutcome {
  const code = String(member(error, "code"));
  if (code === "OAUTH_RESPONSE_BODY_ERROR") return refusalOf(error, secrets);
  if (!code.startsWith("OAUTH_")) {
    const network = networkFault(error);
    if (network === null) throw error;
    return { ok: false, refused: false, message: network.message };
  }
  const cause = member(error, "cause");
  const status = cause instanceof Response ? cause.status : 200;
  const words = status === 200 ? "Its answer is not one of OAuth" : `It answered with status ${status}`;
  return { ok: false, refused: status === 401, message: `${words}.` };
}

function refusalOf(error: unknown, secrets: string[]): TokenOutcome {
  const name = String(member(error, "error"));
  const status = Number(member(error, "status"));
  const words = quote([name, member(error, "error_description")].filter(Boolean).join(": "), secrets);
  const passing = PASSING_ERRORS.has(name) || PASSING_STATUS.has(status);
  return { ok: false, refused: !passing, message: `It said: ${words.replace(/\.$/, "")}.` };
}
