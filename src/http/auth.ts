import { Elysia } from "elysia";
import { refusalOfDeleted } from "../resources/accounts/accounts.ts";
import { type KeyOwner, ownerOfApiKey } from "../resources/accounts/api-keys.ts";
import { noteChange } from "../resources/accounts/changes.ts";
import { type Caller, findSession } from "../resources/accounts/sessions.ts";
import type { App } from "../app.ts";
import { type PlanLimits, planLimits } from "../resources/billing/plans.ts";
import type { SessionRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { clientNetwork } from "../net/networks.ts";
import { readBody, readCallBody } from "./body.ts";
import { noteCaller } from "./callers.ts";
import { sessionCookie } from "./cookies.ts";
import { awaitTurn } from "./in-hand.ts";
import { clientAddress, isFor, refuseOverRate, SAFE_METHODS } from "./request.ts";
import { keepSent } from "./warnings.ts";
import { MINUTE_SECONDS } from "../lib/durations.ts";

const UNAUTHORIZED = "This needs a valid API key, or the session of somebody who has signed in.";

const UNKNOWN_KEY =
  "The API key that was sent is not known here: it is mistyped, revoked, or of another server.";

type Served = Parameters<typeof clientAddress>[1];

/**
 * Adds `caller` and its parts (see `Caller`) to every route of the plugin. A request without a valid
 * credential gets 401 before its parameters and body are validated.
 */
export function authenticated(app: App) {
  return withCaller(app, () => undefined);
}

/**
 * Like `authenticated`, for routes that need a person in a browser: an API key gets 403, after the request was
 * validated.
 */
export function signedIn(app: App) {
  return authenticated(app).resolve({ as: "scoped" }, (caller) => ({ session: sessionOf(caller) }));
}

function sessionOf({ session }: Pick<Caller, "session">): SessionRow {
  if (session) return session;
  throw new AppError("session_required", "An API key cannot do this: it is for somebody who has signed in.", {
    fix: "Sign in with POST /auth/verify or POST /auth/login, and send the cookie instead of the key.",
  });
}

/**
 * Like `authenticated`, for administrators; others get 403. Each change is recorded before it runs, whether or not it
 * succeeds, because it affects other people's accounts.
 */
export function administrators(app: App) {
  return withCaller(app, refuseOthers).onBeforeHandle({ as: "scoped" }, async ({ caller, request }) => {
    if (SAFE_METHODS.has(request.method)) return;
    await app.write((tx) => noteChange(app, tx, caller, "administered"));
  });
}

/** Like `administrators`, for actions that an API key must not be able to do. */
export function signedInAdministrators(app: App) {
  return administrators(app).resolve({ as: "scoped" }, (caller) => ({ session: sessionOf(caller) }));
}

function refuseOthers({ user }: Caller): void {
  if (user.is_admin === 1) return;
  throw new AppError("admin_required", "Only an administrator of this server may do this.", {
    fix: "The first account is one, and so is that of auth.admin_email.",
  });
}

function withCaller(app: App, refuse: (caller: Caller) => void) {
  const callers = new WeakMap<Request, Caller>();
  const admit = (caller: Caller | undefined, request: Request): Caller => {
    if (!caller) throw unauthorized(request);
    refuse(caller);
    return caller;
  };
  return new Elysia()
    .onParse({ as: "scoped" }, async ({ request, server }) => {
      const { user } = admit(await knownCaller(app, { request, server }), request);
      noteCaller(request);
      const sent = { app, request, who: user.id };
      const body = await (isFor(request, "/v1/messages") ? readCallBody(sent) : readBody(sent));
      // A body takes as long as its sender likes, and the credential may have ended meanwhile.
      callers.set(request, admit(await findCaller(app, { request, server }), request));
      return keepSent(request, body);
    })
    .derive({ as: "scoped" }, async ({ request, server, set }) => {
      // What one caller may see is nothing for a cache between; a route may say so in other words.
      set.headers["cache-control"] = "private, no-store";
      const caller = callers.get(request) ?? admit(await knownCaller(app, { request, server }), request);
      noteCaller(request);
      const turn = awaitTurn(app, caller.user, request);
      if (turn) await turn;
      return { ...caller, caller };
    })
    .onAfterHandle({ as: "scoped" }, ({ user, request }) => refuseDeleted(app, user, request));
}

/**
 * Answers a write by a deleted account with an error: what was stored during the deletion is erased with the account,
 * so nobody must be told that it was stored.
 */
async function refuseDeleted(app: App, user: UserRow, request: Request): Promise<void> {
  if (SAFE_METHODS.has(request.method) || isFor(request, "/auth/account")) return;
  const refusal = await refusalOfDeleted(app.db, user);
  if (refusal) throw refusal;
}

/** Reads the bodies of public routes as `authenticated` does. */
export function unauthenticated(app: App) {
  return new Elysia().onParse({ as: "scoped" }, async ({ request, server }) => {
    const who = clientNetwork(clientAddress(app, { request, server }));
    return keepSent(request, await readBody({ app, request, who }));
  });
}

/**
 * Returns the owner of the request's credential; undefined without a valid one. Counts the request against its rate
 * limit.
 */
export async function knownCaller(app: App, served: Served): Promise<Caller | undefined> {
  const { request } = served;
  const found = await findCaller(app, served);
  if (!found) return undefined;
  const limits = planLimits(app.config, found.user.plan);
  // `POST /v1/messages` has a rate limit of its own.
  const [what, limit] =
    request.method === "POST" && isFor(request, "/v1/messages")
      ? ["calls", callsPerMinute(limits)]
      : ["api", limits.api_per_minute];
  refuseOverRate(app, `${what}:${found.key_id ?? found.session?.id}`, {
    limit,
    window_seconds: MINUTE_SECONDS,
  });
  return found;
}

function findCaller(app: App, served: Served): Promise<Caller | undefined> {
  const key = keyIn(served.request.headers);
  // A key that is sent explicitly is the only credential that counts: browsers send the cookie along by themselves.
  return key === undefined ? bySession(app, served) : byKey(app, served, key);
}

/**
 * Returns the limit of all requests to `POST /v1/messages`, replays and invalid bodies included. It is at least twice
 * the number of calls accepted in a minute, so that valid calls meet that limit first.
 */
function callsPerMinute({ api_per_minute, route_per_minute }: PlanLimits): number {
  const unlimited = api_per_minute === 0 || route_per_minute === 0;
  return unlimited ? 0 : Math.max(api_per_minute, 2 * route_per_minute);
}

/** Returns the key in `X-API-Key`, or else in `Authorization: Bearer`. An empty header counts as a wrong key. */
function keyIn(headers: Headers): string | undefined {
  const header = headers.get("x-api-key");
  if (header !== null) return header.trim();
  const authorization = headers.get("authorization");
  if (authorization === null) return undefined;
  return /^Bearer +(\S.*)$/i.exec(authorization)?.[1]?.trim() ?? "";
}

async function byKey(app: App, served: Served, key: string): Promise<Caller | undefined> {
  const client = () => clientAddress(app, served);
  const owner: KeyOwner | undefined = await ownerOfApiKey(app, key, client);
  return owner && { user: owner.user, session: null, key_id: owner.key_id, client };
}

async function bySession(app: App, served: Served): Promise<Caller | undefined> {
  const { request } = served;
  const value = sessionCookie(request.headers);
  const found = value === undefined ? undefined : await findSession(app, value);
  if (!found) return undefined;
  if (!SAFE_METHODS.has(request.method)) refuseForeignPage(app, request);
  return { ...found, key_id: null, client: () => clientAddress(app, served) };
}

/**
 * Throws for a request from a page of another site: a browser sends the cookie along, and says in Sec-Fetch-Site or
 * Origin where the page is from (OWASP: Fetch Metadata, Origin).
 */
export function refuseForeignPage(app: App, request: Request): void {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  const own = [new URL(request.url).origin, app.base_url];
  // Sec-Fetch-Site counts before Origin, which may differ from ours behind a proxy that ends TLS.
  const foreign =
    site === null ? origin !== null && !own.includes(origin) : site !== "same-origin" && site !== "none";
  if (foreign)
    throw new AppError("cross_origin", "A page of another site sent this request with your session.", {
      fix: "Use the dashboard of this server, or send an API key as the header X-API-Key.",
    });
}

function unauthorized(request: Request): AppError {
  if (keyIn(request.headers))
    return new AppError("unauthorized", UNKNOWN_KEY, {
      fix: "Compare it with the keys in the dashboard, under Settings, or make another one there or with `mailwright api-key create`.",
    });
  return new AppError("unauthorized", UNAUTHORIZED, {
    fix: "Send an API key as the header X-API-Key: POST /auth/api-key and `mailwright api-key create` make one.",
  });
}
