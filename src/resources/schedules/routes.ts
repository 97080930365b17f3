import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { refuseOverCallRate } from "../../http/request.ts";
import { pageQuery, pageShape } from "../../http/shapes.ts";
import { jsonAnswer } from "../../http/stream.ts";
import { listMessages } from "../messages/list.ts";
import { ActivityShape, RunShape } from "../messages/shapes.ts";
import { runScheduleAtOnce } from "./run-due.ts";
import { createSchedule, deleteSchedule, patchSchedule } from "./schedules.ts";
import { newScheduleBody, scheduleBody, ScheduleShape } from "./shapes.ts";
import { listSchedules, ownSchedule, readSchedule } from "./view.ts";

const POLL_SECONDS = 2;
const params = t.Object({ schedule_id: t.String({ format: "uuid" }) });

export function scheduleRoutes(app: App) {
  return new Elysia({ prefix: "/v1" })
    .use(collectionRoutes(app))
    .use(scheduleByIdRoutes(app))
    .use(runRoutes(app));
}

function collectionRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/schedules", ({ user }) => listSchedules(app.db, user), {
      ...describe({
        tag: "Schedules",
        summary: "All schedules, oldest first",
        answers: { 200: t.Array(ScheduleShape) },
      }),
    })
    .post(
      "/schedules",
      async ({ caller, body, set }) => {
        set.status = 201;
        return createSchedule(app, caller, body);
      },
      {
        body: newScheduleBody,
        ...describe({
          tag: "Schedules",
          summary: "Have an instruction worked on at times to come",
          description:
            "Either `every` or `at` says when. Each run is a message of its own, costs a credit, and is answered by mail to the owner, unless the instruction says `--no-reply`.",
          answers: { 201: ScheduleShape },
          errors: ["email_not_verified", "not_found", "plan_limit_reached", "inbox_required", "storage_full"],
        }),
      },
    );
}

function scheduleByIdRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/schedules/:schedule_id", ({ user, params }) => readSchedule(app.db, user, params.schedule_id), {
      params,
      ...describe({ tag: "Schedules", summary: "One schedule", answers: { 200: ScheduleShape } }),
    })
    .patch(
      "/schedules/:schedule_id",
      ({ caller, params, body: input }) => patchSchedule(app, caller, { id: params.schedule_id, input }),
      {
        params,
        body: scheduleBody,
        ...describe({
          tag: "Schedules",
          summary: "Change, pause or resume a schedule",
          description: "Only the given members change. Other times have it run again where it had ended.",
          answers: { 200: ScheduleShape },
          errors: ["conflict", "plan_limit_reached", "storage_full"],
        }),
      },
    )
    .delete(
      "/schedules/:schedule_id",
      async ({ caller, params, set }) => {
        await deleteSchedule(app, caller, params.schedule_id);
        set.status = 204;
      },
      {
        params,
        ...describe({
          tag: "Schedules",
          summary: "Delete a schedule",
          description: "What its runs have done stays.",
          answers: { 204: null },
        }),
      },
    );
}

function runRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .post(
      "/schedules/:schedule_id/run",
      async ({ user, caller, params, set }) => {
        const admit = (): void => refuseOverCallRate(app, user);
        const view = await runScheduleAtOnce(app, caller, { id: params.schedule_id, admit });
        set.status = 202;
        set.headers["location"] = `/v1/messages/${view.message_id}`;
        set.headers["retry-after"] = String(POLL_SECONDS);
        return view;
      },
      {
        params,
        ...describe({
          tag: "Schedules",
          summary: "Run a schedule now",
          description: "Its next time stays as it is.",
          answers: { 202: RunShape },
          errors: ["conflict", "storage_full"],
          answer_headers: {
            Location: "Where the result will be.",
            "Retry-After": "Seconds until it is worth asking.",
          },
        }),
      },
    )
    .get(
      "/schedules/:schedule_id/runs",
      async ({ user, params, query, set: { headers } }) => {
        const { id: schedule_id } = await ownSchedule(app.db, user, params.schedule_id);
        return jsonAnswer(
          app,
          { who: user.id, headers },
          await listMessages(app, user, { ...query, schedule_id }),
        );
      },
      {
        params,
        query: t.Object(pageQuery),
        ...describe({
          tag: "Schedules",
          summary: "The runs of a schedule, newest first",
          answers: { 200: pageShape(ActivityShape) },
        }),
      },
    );
}
