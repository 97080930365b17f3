import { createHash } from "node:crypto";
import type { ConfigOverrides } from "../../src/config/config.ts";

export type ProviderKind = "notes" | "codehost-a" | "codehost-b" | "sheets";

/** A request to a token or revocation endpoint. */
interface Asked {
  kind: ProviderKind;
  path: string;
  authorization: string | null;
  content_type: string | null;
  body: Record<string, string>;
}

export interface OAuthProviders extends AsyncDisposable {
  config: ConfigOverrides;
  asked: Asked[];
  /** What the consent pages were asked for. */
  consents: URLSearchParams[];
  /** Who agrees on the consent page, by its login or address. */
  person: string;
  /** Answers the next token requests instead of the provider; null ends that. */
  instead: (() => Response | Promise<Response>) | null;
  /** Waited for before a token request is answered. */
  before: (() => Promise<void>) | null;
  /** How long access tokens are good, in seconds; null: it does not say. */
  expires_in: number | null;
  /** Opens a consent page and agrees; the path and query that the browser is sent back to. */
  agree(authorize_url: string): Promise<string>;
}

interface Grant {
  kind: ProviderKind;
  person: string;
  challenge: string | null;
  redirect_uri: string;
}

/** What the stand-ins have given out. */
interface Given {
  codes: Map<string, Grant>;
  refresh: Map<string, Grant>;
  access: Map<string, Grant>;
}

const ID = "client-id";
const SECRET = "client-secret";
const NOTION_MEMBERS = new Set(["grant_type", "code", "redirect_uri", "refresh_token"]);

/** Notion, GitHub, GitLab and Google as their documentation says that they are, as far as OAuth goes. */
export function startOAuthProviders(): OAuthProviders {
  const given: Given = { codes: new Map(), refresh: new Map(), access: new Map() };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => answer(state, given, request),
  });
  const settings = (kind: ProviderKind) => {
    const api_base = `http://127.0.0.1:${server.port}/${kind}`;
    const endpoints = { authorize_url: `${api_base}/authorize`, token_url: `${api_base}/token`, api_base };
    return { client_id: ID, client_secret: SECRET, ...endpoints };
  };
  const state: OAuthProviders = {
    config: {
      egress: { allow: ["127.0.0.1"] },
      integrations: {
        notes: settings("notes"),
        "codehost-a": settings("codehost-a"),
        "codehost-b": settings("codehost-b"),
        sheets: settings("sheets"),
      },
    },
    asked: [],
    consents: [],
    person: "ada",
    instead: null,
    before: null,
    expires_in: 3_600,
    agree,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return state;
}

async function answer(state: OAuthProviders, given: Given, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const [, kind, path] = /^\/([\w-]+)\/(.*)$/.exec(url.pathname) as unknown as [string, ProviderKind, string];
  if (path === "authorize") return consent(state, given, kind, url.searchParams);
  if (request.method === "GET") return whoami(given, kind, request.headers);
  const asked = { kind, path, ...(await read(request)) };
  state.asked.push(asked);
  if (path === "token") await state.before?.();
  if (path === "token") return state.instead === null ? tokensFor(state, given, asked) : state.instead();
  return new Response(null, { status: request.method === "DELETE" ? 204 : 200 });
}

function consent(
  state: OAuthProviders,
  { codes }: Given,
  kind: ProviderKind,
  wanted: URLSearchParams,
): Response {
  state.consents.push(wanted);
  const code = random();
  const redirect_uri = wanted.get("redirect_uri") ?? "";
  codes.set(code, { kind, person: state.person, challenge: wanted.get("code_challenge"), redirect_uri });
  const back = new URL(redirect_uri);
  back.searchParams.set("code", code);
  back.searchParams.set("state", wanted.get("state") ?? "");
  return Response.redirect(back.href, 302);
}

function whoami({ access }: Given, kind: ProviderKind, headers: Headers): Response {
  const grant = access.get(headers.get("authorization")?.replace("Bearer ", "") ?? "");
  if (grant?.kind !== kind) return Response.json({ message: "Bad credentials" }, { status: 401 });
  const { person } = grant;
  return Response.json({ login: person, username: person, email: `${person}@example.com`, sub: person });
}

function tokensFor(state: OAuthProviders, given: Given, asked: Asked): Response {
  const { kind, body } = asked;
  if (!isClient(asked)) return refusal(kind, "invalid_client", 401);
  if (kind === "notes" && Object.keys(body).some((name) => !NOTION_MEMBERS.has(name)))
    return Response.json({ error: "validation_error" }, { status: 400 });
  const first = body["grant_type"] === "authorization_code";
  const grant = first ? grantOfCode(given, body) : grantOfRefresh(given, body);
  if (grant?.kind !== kind)
    return refusal(kind, kind === "codehost-a" ? "bad_verification_code" : "invalid_grant");
  return tokens(state, given, grant, first);
}

function isClient({ kind, authorization, body }: Asked): boolean {
  if (kind === "notes") return authorization === `Basic ${btoa(`${ID}:${SECRET}`)}`;
  return body["client_id"] === ID && body["client_secret"] === SECRET;
}

/** GitHub says so with status 200. */
function refusal(kind: ProviderKind, error: string, status = 400): Response {
  const body = { error, error_description: `The ${error} <b>words</b>` };
  return Response.json(body, { status: kind === "codehost-a" ? 200 : status });
}

function grantOfCode({ codes }: Given, body: Asked["body"]): Grant | undefined {
  const { code = "", code_verifier = "", redirect_uri } = body;
  const grant = codes.get(code);
  codes.delete(code);
  const proof = createHash("sha256").update(code_verifier).digest("base64url");
  const proven = grant?.challenge === null || grant?.challenge === proof;
  return proven && grant?.redirect_uri === redirect_uri ? grant : undefined;
}

/** Google's may be used again, the others are good once. */
function grantOfRefresh({ refresh }: Given, { refresh_token = "" }: Asked["body"]): Grant | undefined {
  const grant = refresh.get(refresh_token);
  if (grant?.kind !== "sheets") refresh.delete(refresh_token);
  return grant;
}

function tokens(state: OAuthProviders, given: Given, grant: Grant, first: boolean): Response {
  const { kind, person } = grant;
  const access_token = `${kind}-access-${random()}`;
  given.access.set(access_token, grant);
  const renews = kind !== "codehost-a" && (kind !== "sheets" || first);
  const refresh_token = `${kind}-refresh-${random()}`;
  if (renews) given.refresh.set(refresh_token, grant);
  return Response.json({
    access_token,
    token_type: kind === "codehost-b" ? "Bearer" : "bearer",
    ...(renews ? { refresh_token } : {}),
    ...(state.expires_in === null ? {} : { expires_in: state.expires_in }),
    ...OWN_MEMBERS[kind](person),
  });
}

const OWN_MEMBERS: Record<ProviderKind, (person: string) => object> = {
  notes: (person) => ({
    bot_id: "bot",
    workspace_id: "workspace-1",
    workspace_name: `Notes of ${person}`,
    workspace_icon: null,
    owner: { type: "user", user: { object: "user", id: person } },
    duplicated_template_id: null,
  }),
  "codehost-a": () => ({ scope: "repo,read:user" }),
  "codehost-b": () => ({ scope: "api", created_at: 1_768_478_400 }),
  sheets: () => ({ scope: "openid email", id_token: "not.for.us" }),
};

async function agree(authorize_url: string): Promise<string> {
  const response = await fetch(authorize_url, { redirect: "manual" });
  const { pathname, search } = new URL(response.headers.get("location") ?? "");
  return pathname + search;
}

async function read(request: Request) {
  const text = await request.text();
  const content_type = request.headers.get("content-type");
  const body = content_type?.includes("json")
    ? (JSON.parse(text) as Record<string, string>)
    : Object.fromEntries(new URLSearchParams(text));
  return { authorization: request.headers.get("authorization"), content_type, body };
}

function random(): string {
  return crypto.randomUUID().replaceAll("-", "");
}
