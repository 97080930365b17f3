import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated, signedIn } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { pageQuery, pageShape } from "../../http/shapes.ts";
import { approve, refuse } from "./approvals.ts";
import { ApprovalShape, approvalStatus, approveBody } from "./shapes.ts";
import { listApprovals, readApproval } from "./view.ts";

const params = t.Object({ approval_id: t.String({ format: "uuid" }) });
const BY_PERSON =
  "For somebody who has signed in: an API key hears 403 `session_required`, as whoever can have a model run must not consent to what it wants.";

export function approvalRoutes(app: App) {
  return new Elysia({ prefix: "/v1" }).use(reading(app)).use(deciding(app));
}

function reading(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/approvals", ({ user, query }) => listApprovals(app, user, query), {
      query: t.Object({ ...pageQuery, status: t.Optional(approvalStatus) }),
      ...describe({
        tag: "Approvals",
        summary: "Calls of tools that wait for consent, and what became of earlier ones, newest first",
        answers: { 200: pageShape(ApprovalShape) },
        errors: ["invalid_cursor"],
      }),
    })
    .get("/approvals/:approval_id", ({ user, params }) => readApproval(app, user, params.approval_id), {
      params,
      ...describe({ tag: "Approvals", summary: "One of them", answers: { 200: ApprovalShape } }),
    });
}

function deciding(app: App) {
  return new Elysia()
    .use(signedIn(app))
    .post(
      "/approvals/:approval_id/approve",
      async ({ caller, params, body, set }) => {
        const view = await approve(app, caller, { id: params.approval_id, hash: body.hash });
        set.status = 202;
        if (view.run_id !== null) set.headers["location"] = `/v1/messages/${view.run_id}`;
        return view;
      },
      {
        params,
        body: approveBody,
        ...describe({
          tag: "Approvals",
          summary: "Have exactly this call made, once",
          description: `${BY_PERSON} The message \`run_id\` makes the call; what comes of it is mailed as well.`,
          answers: { 202: ApprovalShape },
          errors: [
            "conflict",
            "email_not_verified",
            "plan_limit_reached",
            "session_required",
            "storage_full",
          ],
          answer_headers: { Location: "Where the result will be." },
        }),
      },
    )
    .post("/approvals/:approval_id/refuse", ({ caller, params }) => refuse(app, caller, params.approval_id), {
      params,
      ...describe({
        tag: "Approvals",
        summary: "Have this call never made",
        description: BY_PERSON,
        answers: { 200: ApprovalShape },
        errors: ["conflict", "session_required"],
      }),
    });
}
