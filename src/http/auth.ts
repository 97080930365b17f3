import { Elysia } from "elysia";
import { type KeyOwner, ownerOfApiKey } from "../accounts/api-keys.ts";
import { findSession } from "../accounts/sessions.ts";
import type { App } from "../app.ts";
import { planLimits } from "../billing/plans.ts";
import type { SessionRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { readBody } from "./body.ts";
import { sessionCookie } from "./cookies.ts";
import { clientAddress, isFor, refuseOverRate } from "./request.ts";

const UNAUTHORIZED = "This needs a valid API key, or the session of somebody who has signed in.";
const MINUTE_SECONDS = 60;
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Who asks, and by what right. */
export interface Caller {
  user: UserRow;
  /** The browser's session; null for an API key. */
  session: SessionRow | null;
}

type Served = Parameters<typeof clientAddress>[1];

/**
 * Adds `user` and `session` to every route of the plugin; a request without a living credential ends with 401, before
 * anything else about it is looked at.
 */
export function authenticated(app: App) {
  const callers = new WeakMap<Request, Promise<Caller>>();
  const callerOf = (served: Served): Promise<Caller> => {
    const known = callers.get(served.request) ?? admit(app, served);
    callers.set(served.request, known);
    return known;
  };
  return new Elysia()
    .onParse({ as: "scoped" }, async ({ request, server }) => {
      await callerOf({ request, server });
      return readBody(request);
    })
    .derive({ as: "scoped" }, async ({ request, server }) => ({ ...(await callerOf({ request, server })) }));
}

/** For the plugins of public routes: reads their bodies as `authenticated` does. */
export function unauthenticated() {
  return new Elysia().onParse({ as: "scoped" }, ({ request }) => readBody(request));
}

async function admit(app: App, served: Served): Promise<Caller> {
  const { request } = served;
  const key = keyIn(request.headers);
  // An explicit key is the only credential that counts: a cookie goes along without anybody's will.
  const found = key === undefined ? await bySession(app, request) : await byKey(app, served, key);
  if (!found) throw unauthorized();
  // Calls of the routing endpoint have a limit of their own.
  if (!(request.method === "POST" && isFor(request, "/v1/messages")))
    refuseOverRate(app, `api:${found.credential}`, {
      limit: planLimits(app.config, found.user.plan).api_per_minute,
      window_seconds: MINUTE_SECONDS,
    });
  return { user: found.user, session: found.session };
}

/** Of `X-API-Key`, else of `Authorization: Bearer`; an empty one is a wrong one. */
function keyIn(headers: Headers): string | undefined {
  const header = headers.get("x-api-key");
  if (header !== null) return header.trim();
  const authorization = headers.get("authorization");
  if (authorization === null) return undefined;
  return /^Bearer +(.+)$/i.exec(authorization)?.[1]?.trim() ?? "";
}

interface Found extends Caller {
  /** What its rate is counted by. */
  credential: string;
}

async function byKey(app: App, served: Served, key: string): Promise<Found | undefined> {
  const owner: KeyOwner | undefined = await ownerOfApiKey(app, key, () => clientAddress(app, served));
  return owner && { user: owner.user, session: null, credential: owner.key_id };
}

async function bySession(app: App, request: Request): Promise<Found | undefined> {
  const value = sessionCookie(request.headers);
  const found = value === undefined ? undefined : await findSession(app, value);
  if (!found) return undefined;
  if (!SAFE_METHODS.has(request.method)) refuseForeignPage(app, request);
  return { ...found, credential: found.session.id };
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
