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

type Served = Parameters<typeof clientAddress>[1];

/**
 * Adds `caller`, and what it is made of, to every route of the plugin; a request without a living credential ends with 401,
 * before anything else about it is looked at.
 */
export function authenticated(app: App) {
  return whoever(app, () => undefined);
}

/** As `authenticated`, for what only a person in a browser may do: a key hears 403, once its request makes sense. */
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
 * As `authenticated`, for routes of which everybody but administrators hears 403. What they do is noted before it is done,
 * whatever comes of it: it is not their own account that changes.
 */
export function administrators(app: App) {
  return whoever(app, refuseOthers).onBeforeHandle({ as: "scoped" }, async ({ caller, request }) => {
    if (SAFE_METHODS.has(request.method)) return;
    await app.write((tx) => noteChange(app, tx, caller, "administered"));
  });
}

/** As `administrators`, for what a key must not be enough for. */
export function signedInAdministrators(app: App) {
  return administrators(app).resolve({ as: "scoped" }, (caller) => ({ session: sessionOf(caller) }));
}

function refuseOthers({ user }: Caller): void {
  if (user.is_admin === 1) return;
  throw new AppError("admin_required", "Only an administrator of this server may do this.", {
    fix: "The first account is one, and so is that of auth.admin_email.",
  });
}

function whoever(app: App, refuse: (caller: Caller) => void) {
  const callers = new WeakMap<Request, Caller>();
  const admit = (caller: Caller | undefined): Caller => {
    if (!caller) throw unauthorized();
    refuse(caller);
    return caller;
  };
  return new Elysia()
    .onParse({ as: "scoped" }, async ({ request, server }) => {
      const { user } = admit(await knownCaller(app, { request, server }));
      noteCaller(request);
      const sent = { app, request, who: user.id };
      const body = await (isFor(request, "/v1/messages") ? readCallBody(sent) : readBody(sent));
      // A body takes as long as its sender likes, and the credential may have ended meanwhile.
      callers.set(request, admit(await findCaller(app, { request, server })));
      return keepSent(request, body);
    })
    .derive({ as: "scoped" }, async ({ request, server }) => {
      const caller = callers.get(request) ?? admit(await knownCaller(app, { request, server }));
      noteCaller(request);
      const turn = awaitTurn(app, caller.user, request);
      if (turn) await turn;
      return { ...caller, caller };
    })
    .onAfterHandle({ as: "scoped" }, ({ user, request }) => refuseDeleted(app, user, request));
}

/** What an account stored while it was being deleted is erased with it, so nobody is told that it was stored. */
async function refuseDeleted(app: App, user: UserRow, request: Request): Promise<void> {
  if (SAFE_METHODS.has(request.method) || isFor(request, "/auth/account")) return;
  const refusal = await refusalOfDeleted(app.db, user);
  if (refusal) throw refusal;
}

/** For the plugins of public routes: reads their bodies as `authenticated` does. */
export function unauthenticated(app: App) {
  return new Elysia().onParse({ as: "scoped" }, async ({ request, server }) => {
    const who = clientNetwork(clientAddress(app, { request, server }));
    return keepSent(request, await readBody({ app, request, who }));
  });
}

/** Whose living credential came along; undefined without one. Counts as one of the requests that it may make. */
export async function knownCaller(app: App, served: Served): Promise<Caller | undefined> {
  const { request } = served;
  const found = await findCaller(app, served);
  if (!found) return undefined;
  const limits = planLimits(app.config, found.user.plan);
  // Calls of the endpoint for calls use up nothing of the rest.
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
  // An explicit key is the only credential that counts: a cookie goes along without anybody's will.
  return key === undefined ? bySession(app, served) : byKey(app, served, key);
}

/**
 * For all that is sent to the endpoint for calls, replays and bad bodies too. Twice what is taken of it in a minute at
 * least: who sends too many good calls meets the limit of those first.
 */
function callsPerMinute({ api_per_minute, route_per_minute }: PlanLimits): number {
  const unlimited = api_per_minute === 0 || route_per_minute === 0;
  return unlimited ? 0 : Math.max(api_per_minute, 2 * route_per_minute);
}

/** Of `X-API-Key`, else of `Authorization: Bearer`; an empty one is a wrong one. */
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

/** A browser sends the cookie also for a form on another site; it says so itself (OWASP: Fetch Metadata, Origin). */
function refuseForeignPage(app: App, request: Request): void {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  const own = [new URL(request.url).origin, app.base_url];
  // What the browser itself calls the same origin may look like another one from behind a proxy that ends TLS.
  const foreign =
    site === null ? origin !== null && !own.includes(origin) : site !== "same-origin" && site !== "none";
  if (foreign)
    throw new AppError("cross_origin", "A page of another site sent this request with your session.", {
      fix: "Use the dashboard of this server, or send an API key as the header X-API-Key.",
    });
}

function unauthorized(): AppError {
  return new AppError("unauthorized", UNAUTHORIZED, {
    fix: "Send an API key as the header X-API-Key: POST /auth/api-key and `mailwright api-key create` make one.",
  });
}
