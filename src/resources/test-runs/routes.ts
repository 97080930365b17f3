import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { refuseOverCallRate } from "../../http/request.ts";
import { historySince } from "../billing/plans.ts";
import { StarredShape, testRunBody, TestRunCardShape, TestRunShape } from "./shapes.ts";
import { listTestSet } from "./stars.ts";
import { createTestRun, deleteTestRun, MAX_TEST_RUNS } from "./test-runs.ts";
import { listTestRuns, readTestRun } from "./view.ts";

const params = t.Object({ test_run_id: t.String({ format: "uuid" }) });

export function testRunRoutes(app: App) {
  return new Elysia({ prefix: "/v1" }).use(readingRoutes(app)).use(changingRoutes(app));
}

function readingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/test-set", ({ user }) => listTestSet(app.db, user, { since: historySince(app, user) }), {
      ...describe({
        tag: "Messages",
        summary: "The starred messages, each with what its answer should be",
        description: "`PATCH /messages/{message_id}` with `expected` stars one.",
        answers: { 200: t.Array(StarredShape) },
      }),
    })
    .get("/test-runs", ({ user }) => listTestRuns(app, user), {
      ...describe({
        tag: "Messages",
        summary: "The runs of the test set, newest first, without their tables",
        answers: { 200: t.Array(TestRunCardShape) },
      }),
    })
    .get(
      "/test-runs/:test_run_id",
      ({ user, params: { test_run_id } }) => readTestRun(app, user, test_run_id),
      {
        params,
        ...describe({
          tag: "Messages",
          summary: "One run of the test set, with what became of each message",
          answers: { 200: TestRunShape },
        }),
      },
    );
}

function changingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .post(
      "/test-runs",
      async ({ user, key_id, body, set }) => {
        const admit = (): void => refuseOverCallRate(app, user);
        const view = await createTestRun(app, { user, key_id }, { asked: body ?? {}, admit });
        set.status = 202;
        set.headers["location"] = `/v1/test-runs/${view.id}`;
        return view;
      },
      {
        // Elysia drops unknown members from an object, but not from one that may also be null.
        body: t.Nullable(t.Object(testRunBody, { additionalProperties: true })),
        ...describe({
          tag: "Messages",
          summary: "Run the test set against another model or context",
          description: `Each starred message is run again as \`POST /messages/{message_id}/replay\` does it: nothing is mailed, no event is sent, no tool is called, and each costs what a run costs. At most 50 messages, and one run at a time; ${MAX_TEST_RUNS} are kept.`,
          optional_body: t.Object(testRunBody),
          answers: { 202: TestRunShape },
          answer_headers: { Location: "Where its table is." },
          errors: ["conflict", "email_not_verified", "plan_limit_reached", "storage_full"],
        }),
      },
    )
    .delete(
      "/test-runs/:test_run_id",
      async ({ user, params: { test_run_id }, set }) => {
        await deleteTestRun(app, user, test_run_id);
        set.status = 204;
      },
      {
        params,
        ...describe({
          tag: "Messages",
          summary: "Delete a run of the test set",
          description: "What of it is not done yet comes to nothing then, and costs nothing.",
          answers: { 204: null },
        }),
      },
    );
}
