import { Elysia, t } from "elysia";
import { endOwnSession, listSessions } from "./own-sessions.ts";
import { SessionShape } from "./shapes.ts";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { signedOutCookie } from "../../http/cookies.ts";
import { describe } from "../../http/describe.ts";

export function sessionRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/auth/sessions", ({ user, session }) => listSessions(app, user, session), {
      ...describe({
        tag: "Auth",
        summary: "The browsers that are signed in to your account, the newest first",
        answers: { 200: t.Array(SessionShape) },
      }),
    })
    .delete(
      "/auth/sessions/:session_id",
      async ({ session, caller, params, set }) => {
        const ended = await endOwnSession(app, caller, params.session_id);
        if (ended.id === session?.id) set.headers["set-cookie"] = signedOutCookie(app);
        set.status = 204;
      },
      {
        params: t.Object({ session_id: t.String({ format: "uuid" }) }),
        ...describe({
          tag: "Auth",
          summary: "Sign a browser out",
          answers: { 204: null },
          answer_headers: { "Set-Cookie": "Clears `service_session`, for the browser that asks." },
        }),
      },
    );
}
