import { Elysia, t } from "elysia";
import { viewMe } from "./profile.ts";
import { needsSetup, setUp } from "./setup.ts";
import { MeShape } from "./shapes.ts";
import type { App } from "../../app.ts";
import { takesPayments } from "../billing/stripe.ts";
import { knownCaller, unauthenticated } from "../../http/auth.ts";
import { signedInCookie } from "../../http/cookies.ts";
import { describe } from "../../http/describe.ts";
import { browserOf, refuseMany } from "../../http/request.ts";
import { VERSION } from "../../lib/version.ts";
import { ServerShape, SetupShape, SignedInShape } from "./setup-shapes.ts";
import { personName } from "./shapes.ts";

const body = t.Object({
  token: t.String({
    minLength: 1,
    maxLength: 100,
    examples: ["Qk3vX0aB7cD1eF5gH9iJ2kL6mN4oP8qR-sT_uVwXyZa"],
  }),
  email: t.String({ maxLength: 320, examples: ["ada@example.com"] }),
  password: t.Optional(t.String({ maxLength: 1_024, examples: ["quiet river 42"] })),
  name: t.Optional(personName),
});

/** The routes of a dashboard that nobody has signed in to yet. */
export function setupRoutes(app: App) {
  return new Elysia().use(whatAnybodyMayKnow(app)).use(setUpRoute(app));
}

function whatAnybodyMayKnow(app: App) {
  return new Elysia()
    .use(unauthenticated(app))
    .get(
      "/server",
      async () => ({
        version: VERSION,
        base_url: app.base_url,
        registration: app.config.auth.registration,
        domain: app.config.smtp.domain,
        chosen_addresses: app.config.inboxes.chosen_addresses,
        outbound_mode: app.config.outbound.mode,
        payments: takesPayments(app),
        needs_setup: await needsSetup(app.db),
      }),
      describe({
        tag: "Server",
        summary: "What anybody may know of this server",
        open: true,
        answers: { 200: ServerShape },
      }),
    )
    .get(
      "/setup",
      async () => ({ needed: await needsSetup(app.db) }),
      describe({
        tag: "Server",
        summary: "Whether the first account is still to be made",
        open: true,
        answers: { 200: SetupShape },
      }),
    )
    .get(
      "/auth/session",
      async ({ request, server, set }) => {
        const caller = await knownCaller(app, { request, server });
        set.headers["cache-control"] = "no-store";
        return { me: caller ? await viewMe(app, caller.user) : null };
      },
      describe({
        tag: "Auth",
        summary: "Your account, if you are signed in",
        description: "As `GET /auth/me`, but that nobody is signed in is an answer like any other.",
        open: true,
        answers: { 200: SignedInShape },
        errors: ["rate_limited"],
      }),
    );
}

function setUpRoute(app: App) {
  return new Elysia().use(unauthenticated(app)).post(
    "/setup",
    async ({ body: given, request, server, set }) => {
      refuseMany(app, "setup-ip", { request, server }, app.config.limits.verify_per_ip_hour);
      const { user, value } = await setUp(app, { ...given, ...browserOf(app, { request, server }) });
      Object.assign(set.headers, { "cache-control": "no-store", "set-cookie": signedInCookie(app, value) });
      return viewMe(app, user);
    },
    {
      body,
      ...describe({
        tag: "Server",
        summary: "Make the first account, and sign in",
        description:
          "`token` is of the link that the server shows in its log at each start while nobody has an account. It works once. The account administers the server, and its address counts as verified.",
        open: true,
        answers: { 200: MeShape },
        answer_headers: { "Set-Cookie": "`service_session`, which signs the browser in." },
        errors: ["invalid_code", "conflict", "rate_limited"],
      }),
    },
  );
}
