import { Elysia, t } from "elysia";
import { CodeRequestedShape } from "../../../resources/accounts/shapes.ts";
import type { App } from "../../../app.ts";
import { administrators, signedInAdministrators } from "../../../http/auth.ts";
import { refuseOverRate } from "../../../http/request.ts";
import { pageQuery, pageShape } from "../../../http/shapes.ts";
import { inviteUser, resetUserPassword, sendCodeTo } from "./ways-in.ts";
import { describeAdmin } from "../described.ts";
import { AdminUserShape } from "../shapes.ts";
import { listUsersPage, patchUser } from "../users.ts";
import { HOUR_SECONDS } from "../../../lib/durations.ts";

/** Each invitation is a mail to somebody who may not know this server. */
const INVITATION_RATE = { limit: 60, window_seconds: HOUR_SECONDS };
const FRESH = "For an administrator who has signed in within the last ten minutes, not for an API key.";

const plan = t.Optional(t.Union([t.Literal("free"), t.Literal("pro"), t.Literal("team")]));
const userParams = t.Object({ user_id: t.String({ format: "uuid" }) });
export function accountRoutes(app: App) {
  return new Elysia().use(userRoutes(app)).use(inviteRoutes(app));
}

function userRoutes(app: App) {
  return new Elysia()
    .use(administrators(app))
    .get("/admin/users", ({ query }) => listUsersPage(app, query), {
      query: t.Object(pageQuery),
      ...describeAdmin({
        summary: "The accounts, the newest first",
        answers: { 200: pageShape(AdminUserShape) },
        errors: ["invalid_cursor"],
      }),
    })
    .patch("/admin/users/:user_id", ({ params, body }) => patchUser(app, params.user_id, body), {
      params: userParams,
      body: t.Object({ plan }),
      ...describeAdmin({ summary: "Move an account to another plan", answers: { 200: AdminUserShape } }),
    })
    .post(
      "/admin/users/:user_id/send-code",
      async ({ params, set }) => {
        const sent = await sendCodeTo(app, params.user_id);
        set.status = 202;
        return sent;
      },
      {
        params: userParams,
        ...describeAdmin({
          summary: "Have a login code mailed to an account",
          description: "As `POST /auth/request-code` with its address, and under the same limits.",
          answers: { 202: CodeRequestedShape },
        }),
      },
    );
}

/** Routes that create or change a way to sign in. */
function inviteRoutes(app: App) {
  return new Elysia()
    .use(signedInAdministrators(app))
    .post(
      "/admin/users",
      async ({ user, session, body, set }) => {
        refuseOverRate(app, "invitations", INVITATION_RATE);
        const made = await inviteUser(app, { user, session }, body);
        set.status = 201;
        return made;
      },
      {
        body: t.Object({ email: t.String({ maxLength: 320, examples: ["bob@example.net"] }), plan }),
        ...describeAdmin({
          summary: "Make an account, and mail its owner an invitation",
          description: `Whoever reads mail there signs in with a code. ${FRESH}`,
          answers: { 201: AdminUserShape },
          errors: ["conflict", "session_required", "rate_limited"],
        }),
      },
    )
    .post(
      "/admin/users/:user_id/reset-password",
      ({ user, session, params }) => resetUserPassword(app, { user, session }, params.user_id),
      {
        params: userParams,
        ...describeAdmin({
          summary: "Take the password of an account away",
          description: `Its browsers are signed out, its owner is told by mail and signs in with a code; its API keys go on. ${FRESH}`,
          answers: { 200: AdminUserShape },
          errors: ["conflict", "session_required"],
        }),
      },
    );
}
