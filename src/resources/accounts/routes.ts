import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated, refuseForeignPage, signedIn, unauthenticated } from "../../http/auth.ts";
import {
  CODE_COOKIE,
  codeCookie,
  cookieNamed,
  KNOWN_COOKIE,
  knownCookie,
  registrationCookie,
  REGISTRATION_COOKIE,
  sessionCookie,
  signedInCookie,
  signedOutCookie,
} from "../../http/cookies.ts";
import { describe } from "../../http/describe.ts";
import { browserOf, clientAddress, refuseMany, type Served } from "../../http/request.ts";
import { type Asker, askerToken, knownToken } from "./code-askers.ts";
import { checkedCode, requestCode, verifyCode } from "./codes.ts";
import { deleteAccount } from "./deletion.ts";
import { setPassword } from "./passwords.ts";
import { patchProfile, viewMe } from "./profile.ts";
import { listSecurityEvents } from "./security-events.ts";
import { endSession } from "./sessions.ts";
import {
  CodeRequestedShape,
  MeShape,
  personName,
  profileBody,
  RegisteredShape,
  SecurityEventShape,
} from "./shapes.ts";
import { login, register } from "./password-sign-in.ts";
import { apiKeyRoutes } from "./key-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { setupRoutes } from "./setup-routes.ts";

const NO_STORE = { "cache-control": "no-store" };
const CODE_COOKIE_MEANING = "`mw_code`, with which a browser has five tries at the code of its own.";
const COOKIE_HEADER = {
  "Set-Cookie":
    "`service_session`, which signs the browser in, and `mw_known`, with which it keeps its tries at later codes of this address whoever else asks for them.",
};

const email = t.String({ maxLength: 320, examples: ["ada@example.com"] });
/**
 * More than any password that is allowed: the rule of 8 to 128 characters is about what is left after normalisation.
 */
const newPassword = t.String({ maxLength: 1_024, examples: ["quiet river 42"] });
const password = t.String({ minLength: 1, maxLength: 1_024, examples: ["quiet river 42"] });

export function accountRoutes(app: App) {
  return new Elysia()
    .use(codeRoutes(app))
    .use(verifyRoutes(app))
    .use(passwordRoutes(app))
    .use(logoutRoutes(app))
    .use(ownRoutes(app))
    .use(setPasswordRoutes(app))
    .use(deletionRoutes(app))
    .use(accessRoutes(app))
    .use(apiKeyRoutes(app))
    .use(sessionRoutes(app))
    .use(setupRoutes(app));
}

function codeRoutes(app: App) {
  const { code_per_ip_hour } = app.config.limits;
  return new Elysia().use(unauthenticated(app)).post(
    "/auth/request-code",
    async ({ body, request, server, set }) => {
      refuseMany(app, "code-ip", { request, server }, code_per_ip_hour);
      const asker = askerOf(app, { request, server });
      const requested = await requestCode(app, body.email, asker);
      set.status = 202;
      Object.assign(set.headers, NO_STORE, { "set-cookie": codeCookie(app, asker.token) });
      return requested;
    },
    {
      body: t.Object({ email }),
      ...describe({
        tag: "Auth",
        summary: "Have a login code mailed",
        description:
          "Makes the account if it is new. The answer is the same for every address; within `retry_after` seconds no second mail is sent, and the code of the last one stays good. With the cookie set here a browser has tries of its own at the code, which the wrong ones of others do not use up.",
        open: true,
        answers: { 202: CodeRequestedShape },
        answer_headers: { "Set-Cookie": CODE_COOKIE_MEANING },
        errors: ["rate_limited"],
      }),
    },
  );
}

function verifyRoutes(app: App) {
  const { verify_per_ip_hour } = app.config.limits;
  return new Elysia().use(unauthenticated(app)).post(
    "/auth/verify",
    async ({ body, request, server, set }) => {
      const code = checkedCode(body.code);
      refuseMany(app, "verify-ip", { request, server }, verify_per_ip_hour);
      const kept = cookieNamed(request.headers, REGISTRATION_COOKIE);
      const tokens = [kept ?? "", body.registration_token ?? ""].filter((token) => token !== "");
      const { user, value } = await verifyCode(app, {
        email: body.email,
        code,
        proof: { tokens, password: body.password },
        asker_token: cookieNamed(request.headers, CODE_COOKIE),
        ...browserOf(app, { request, server }),
      });
      const cookies = signedInCookies(app, user, value);
      if (kept !== undefined) cookies.push(registrationCookie(app, null));
      Object.assign(set.headers, NO_STORE, { "set-cookie": cookies });
      return viewMe(app, user);
    },
    {
      body: t.Object({
        email,
        code: t.String({ maxLength: 100, examples: ["123456"] }),
        password: t.Optional(password),
        registration_token: t.Optional(t.String({ maxLength: 100 })),
      }),
      ...describe({
        tag: "Auth",
        summary: "Sign in with a login code",
        description:
          "A password that was chosen with `POST /auth/register` in the last 15 minutes becomes the account's own if the cookie set there or `registration_token` comes along, or `password` is that password. With neither, or with those of another registration, the code signs in and the chosen password is forgotten: `has_password` tells. With `password` the answer is 200 only if it is the account's password from then on; otherwise it is 401 `invalid_credentials`, nobody is signed in, and the code stays good.",
        open: true,
        answers: { 200: MeShape },
        answer_headers: COOKIE_HEADER,
        errors: ["invalid_code", "invalid_credentials", "rate_limited"],
      }),
    },
  );
}

function passwordRoutes(app: App) {
  const { code_per_ip_hour, login_per_ip_hour } = app.config.limits;
  return new Elysia()
    .use(unauthenticated(app))
    .post(
      "/auth/register",
      async ({ body, request, server, set }) => {
        refuseMany(app, "code-ip", { request, server }, code_per_ip_hour);
        const asker = askerOf(app, { request, server });
        const { retry_after, registration_token } = await register(app, body, asker);
        const cookies = [registrationCookie(app, registration_token), codeCookie(app, asker.token)];
        set.status = 202;
        Object.assign(set.headers, NO_STORE, { "set-cookie": cookies });
        return { status: "verification_required" as const, retry_after, registration_token };
      },
      {
        body: t.Object({ email, password: newPassword, name: t.Optional(personName) }),
        ...describe({
          tag: "Auth",
          summary: "Choose a password for a new account, or for one without a password",
          description:
            "The password starts to work when the mailed code is verified within 15 minutes by who chose it: with the cookie set here, with `registration_token`, or with the same `password` given to `POST /auth/verify` once more. Of several registrations for an address the last one counts. A password that the account has already stays as it is.",
          open: true,
          answers: { 202: RegisteredShape },
          answer_headers: {
            "Set-Cookie": `\`mw_registration\`, which does what \`registration_token\` does, and ${CODE_COOKIE_MEANING}`,
          },
          errors: ["rate_limited"],
        }),
      },
    )
    .post(
      "/auth/login",
      async ({ body, request, server, set }) => {
        refuseMany(app, "login-ip", { request, server }, login_per_ip_hour);
        const { user, value } = await login(app, { ...body, ...browserOf(app, { request, server }) });
        Object.assign(set.headers, NO_STORE, { "set-cookie": signedInCookies(app, user, value) });
        return viewMe(app, user);
      },
      {
        body: t.Object({ email, password }),
        ...describe({
          tag: "Auth",
          summary: "Sign in with a password",
          open: true,
          answers: { 200: MeShape },
          answer_headers: COOKIE_HEADER,
          errors: ["invalid_credentials", "email_not_verified", "rate_limited"],
        }),
      },
    );
}

function askerOf(app: App, served: Served): Asker {
  const token = askerToken(cookieNamed(served.request.headers, CODE_COOKIE));
  const known = cookieNamed(served.request.headers, KNOWN_COOKIE);
  return { token, client: clientAddress(app, served), known };
}

function signedInCookies(app: App, { email }: { email: string }, value: string): string[] {
  return [signedInCookie(app, value), knownCookie(app, knownToken(app, email))];
}

/** Signing out reads no body, so that no fault in one can keep anybody signed in. */
function logoutRoutes(app: App) {
  return new Elysia().post(
    "/auth/logout",
    async ({ request, set }) => {
      refuseForeignPage(app, request);
      await endSession(app, sessionCookie(request.headers) ?? "");
      set.headers["set-cookie"] = signedOutCookie(app);
      set.status = 204;
    },
    {
      parse: "none",
      ...describe({
        tag: "Auth",
        summary: "End the session of this browser",
        open: true,
        errors: ["cross_origin"],
        answers: { 204: null },
        answer_headers: { "Set-Cookie": "Clears `service_session`." },
      }),
    },
  );
}

function ownRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/auth/me", ({ user }) => viewMe(app, user), {
      ...describe({ tag: "Auth", summary: "Your account and its credits", answers: { 200: MeShape } }),
    })
    .patch("/auth/profile", async ({ caller, body }) => viewMe(app, await patchProfile(app, caller, body)), {
      body: profileBody,
      ...describe({
        tag: "Auth",
        summary: "Change your name, time zone or reply footer",
        answers: { 200: MeShape },
      }),
    });
}

function setPasswordRoutes(app: App) {
  return new Elysia().use(signedIn(app)).post(
    "/auth/set-password",
    async ({ user, session, body, request, server }) => {
      const client = clientAddress(app, { request, server });
      return viewMe(app, await setPassword(app, { user, session, client }, body));
    },
    {
      body: t.Object({ password: newPassword, current_password: t.Optional(password) }),
      ...describe({
        tag: "Auth",
        summary: "Set your password; every other browser is signed out",
        description:
          "For somebody who has signed in: an API key hears 403 `session_required`. So does a session that began more than ten minutes ago. Where there is a password, `current_password` is needed, unless the session began with a code.",
        answers: { 200: MeShape },
        errors: ["current_password_required", "session_required"],
      }),
    },
  );
}

function deletionRoutes(app: App) {
  return new Elysia().use(authenticated(app)).delete(
    "/auth/account",
    async ({ user, key_id, body, request, server, set }) => {
      const client = clientAddress(app, { request, server });
      await deleteAccount(app, user, { ...body, client, key_id });
      set.headers["set-cookie"] = [signedOutCookie(app), knownCookie(app, null)];
      set.status = 204;
    },
    {
      body: t.Object({ confirm: email, password: t.Optional(password) }),
      ...describe({
        tag: "Auth",
        summary: "Delete your account and everything in it, for good",
        description:
          "`confirm` is its mail address; `password` is the account's, and is needed where it has one. The owner is told by mail.",
        answers: { 204: null },
        errors: ["current_password_required"],
      }),
    },
  );
}

function accessRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/auth/security-events", ({ user }) => listSecurityEvents(app.db, user), {
      ...describe({
        tag: "Auth",
        summary: "Sign-ins, refusals and changes of your account, newest first",
        description:
          "What is repeated within an hour is counted (`times`). Of each kind the first ten of the last 30 days and the last ten are kept, so that no kind can push out another.",
        answers: { 200: t.Array(SecurityEventShape) },
      }),
    });
}
