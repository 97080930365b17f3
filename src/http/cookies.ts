import { ASKER_SECONDS } from "../resources/accounts/code-askers.ts";
import { PENDING_SECONDS } from "../resources/accounts/registration.ts";
import { sessionSeconds } from "../resources/accounts/sessions.ts";
import type { App } from "../app.ts";

/** Names of the session cookie: the one that is set, and one that earlier documentation used. */
const NAMES = ["service_session", "session"];
export const REGISTRATION_COOKIE = "mw_registration";
export const CODE_COOKIE = "mw_code";
export const KNOWN_COOKIE = "mw_known";
/** 400 days, the longest that browsers keep a cookie. */
const KNOWN_SECONDS = 34_560_000;

/** Returns the value of the session cookie; undefined without one. */
export function sessionCookie(headers: Headers): string | undefined {
  for (const name of NAMES) {
    const value = cookieNamed(headers, name);
    if (value !== undefined && value !== "") return value;
  }
  return undefined;
}

export function cookieNamed(headers: Headers, name: string): string | undefined {
  for (const pair of (headers.get("cookie") ?? "").split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return undefined;
}

/** Returns the `Set-Cookie` header (RFC 6265 §4.1) for a new session. */
export function signedInCookie(app: App, value: string): string {
  return cookie(app, `${NAMES[0]}=${value}`, sessionSeconds(app));
}

export function signedOutCookie(app: App): string {
  return cookie(app, `${NAMES[0]}=`, 0);
}

/** Returns the cookie that identifies the browser which chose a password during registration; null removes it. */
export function registrationCookie(app: App, token: string | null): string {
  return cookie(app, `${REGISTRATION_COOKIE}=${token ?? ""}`, token === null ? 0 : PENDING_SECONDS);
}

/** Returns the cookie that identifies the browser which asked for a sign-in code; sent to /auth only. */
export function codeCookie(app: App, token: string): string {
  return cookie(app, `${CODE_COOKIE}=${token}`, ASKER_SECONDS, "/auth");
}

/** Returns the cookie that marks a browser which has signed in before; sent to /auth only. Null removes it. */
export function knownCookie(app: App, token: string | null): string {
  return cookie(app, `${KNOWN_COOKIE}=${token ?? ""}`, token === null ? 0 : KNOWN_SECONDS, "/auth");
}

/**
 * Returns a cookie with HttpOnly and SameSite=Lax, and with Secure where this server is reached over https. `pair` is
 * `name=value`.
 */
function cookie(app: App, pair: string, max_age_seconds: number, path = "/"): string {
  const secure = app.base_url.startsWith("https:") ? "; Secure" : "";
  return `${pair}; Path=${path}; Max-Age=${max_age_seconds}; HttpOnly; SameSite=Lax${secure}`;
}
