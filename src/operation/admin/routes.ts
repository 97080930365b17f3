import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { administrators } from "../../http/auth.ts";
import type { Health } from "../../http/health.ts";
import { refuseOverRate } from "../../http/request.ts";
import { pageQuery, pageShape } from "../../http/shapes.ts";
import { jsonAnswer } from "../../http/stream.ts";
import { JOB_KINDS } from "../../jobs/kinds.ts";
import { HELD_BY_DEFAULT, heldKinds } from "../../jobs/holds.ts";
import { accountRoutes } from "./accounts/routes.ts";
import { beginBackup, readBackups } from "./backups.ts";
import { dropJob, retryJob } from "./change-job.ts";
import { createDays } from "./days.ts";
import { createExamination } from "./examination.ts";
import { listOutgoing, readOutgoing } from "./mail.ts";
import { describeAdmin } from "./described.ts";
import { readOverview } from "./overview.ts";
import { hold, listQueue, release } from "./queue.ts";
import {
  BackupsShape,
  DaysShape,
  ExaminationShape,
  HeldShape,
  JobShape,
  jobState,
  mailStatus,
  OutgoingMailDetailShape,
  OutgoingMailShape,
  OverviewShape,
} from "./shapes.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/** Each examination asks the DNS and other servers, and reads the whole database. */
const DOCTOR_RATE = { limit: 10, window_seconds: 600 };
/** Each backup copies everything, and may replace an older one. */
const BACKUP_RATE = { limit: 6, window_seconds: HOUR_SECONDS };

const jobParams = t.Object({ job_id: t.String({ format: "uuid" }) });
const jobKind = t.Union(JOB_KINDS.map((kind) => t.Literal(kind)));
const heldBody = t.Object({ kind: t.Optional(jobKind) });

export function adminRoutes(app: App, health: Health) {
  return new Elysia()
    .use(overviewRoutes(app, health))
    .use(accountRoutes(app))
    .use(queueRoutes(app))
    .use(holdRoutes(app))
    .use(mailRoutes(app))
    .use(doctorRoutes(app))
    .use(backupRoutes(app));
}

function overviewRoutes(app: App, health: Health) {
  const days = createDays(app);
  return new Elysia()
    .use(administrators(app))
    .get(
      "/admin/overview",
      async () =>
        readOverview(app, {
          checks: await health.ready(),
          warnings: (await health.warnings?.()) ?? {},
        }),
      { ...describeAdmin({ summary: "How the server is doing", answers: { 200: OverviewShape } }) },
    )
    .get("/admin/days", () => days.list(), {
      ...describeAdmin({
        summary: "What went on in the last 30 days, day by day",
        answers: { 200: DaysShape },
      }),
    });
}

function queueRoutes(app: App) {
  return new Elysia()
    .use(administrators(app))
    .get("/admin/queue", ({ query }) => listQueue(app, query), {
      query: t.Object({ ...pageQuery, kind: t.Optional(jobKind), state: t.Optional(jobState) }),
      ...describeAdmin({
        summary: "The work that waits, the oldest first",
        answers: { 200: pageShape(JobShape) },
        errors: ["invalid_cursor"],
      }),
    })
    .post(
      "/admin/queue/:job_id/retry",
      async ({ params, set }) => {
        await retryJob(app, params.job_id);
        set.status = 204;
      },
      {
        params: jobParams,
        ...describeAdmin({
          summary: "Have a job tried at once, also one that was given up",
          answers: { 204: null },
          errors: ["conflict"],
        }),
      },
    )
    .post(
      "/admin/queue/:job_id/drop",
      async ({ params, body, set }) => {
        await dropJob(app, params.job_id, body.reason ?? null);
        set.status = 204;
      },
      {
        params: jobParams,
        body: t.Object({
          reason: t.Optional(t.String({ maxLength: 300, examples: ["sent by mistake"] })),
        }),
        ...describeAdmin({
          summary: "Take a job out of the queue for good",
          description: "A message that it was for ends as failed, and its credit is given back.",
          answers: { 204: null },
          errors: ["conflict"],
        }),
      },
    );
}

function holdRoutes(app: App) {
  const heldNow = async () => ({ held: (await heldKinds(app.db)).map(({ kind }) => kind) });
  return new Elysia()
    .use(administrators(app))
    .post(
      "/admin/queue/hold",
      async ({ body }) => {
        await hold(app, body.kind === undefined ? HELD_BY_DEFAULT : [body.kind]);
        return heldNow();
      },
      {
        body: heldBody,
        ...describeAdmin({
          summary: "Begin nothing more of a kind until it is released",
          description:
            "Without `kind`: runs, mails and webhooks. What runs already goes on to its end. Mail is still taken in.",
          answers: { 200: HeldShape },
        }),
      },
    )
    .post(
      "/admin/queue/release",
      async ({ body }) => {
        await release(app, body.kind === undefined ? JOB_KINDS : [body.kind]);
        return heldNow();
      },
      {
        body: heldBody,
        ...describeAdmin({
          summary: "Let what was held go on",
          description: "Without `kind`: all of it.",
          answers: { 200: HeldShape },
        }),
      },
    );
}

function mailRoutes(app: App) {
  return new Elysia()
    .use(administrators(app))
    .get("/admin/mail", ({ user, key_id, query }) => listOutgoing(app, { user, key_id }, query), {
      query: t.Object({
        ...pageQuery,
        status: t.Optional(mailStatus),
        q: t.Optional(
          t.String({
            minLength: 1,
            maxLength: 200,
            description:
              "Stands in the recipient, in the address of the account or, where it is shown, in the subject.",
            examples: ["bob@example.net"],
          }),
        ),
      }),
      ...describeAdmin({
        summary: "Mails of this server on their way out, or in its capture box; the newest first",
        description:
          "A page of a search looks at 1,000 mails at most, so that it may have fewer than `limit`, or none, and still a `next_cursor`.",
        answers: { 200: pageShape(OutgoingMailShape) },
        errors: ["invalid_cursor"],
      }),
    })
    .get(
      "/admin/mail/:mail_id",
      async ({ user, params, key_id, set: { headers } }) =>
        jsonAnswer(app, { who: user.id, headers }, await readOutgoing(app, { user, key_id }, params.mail_id)),
      {
        params: t.Object({ mail_id: t.String({ format: "uuid" }) }),
        ...describeAdmin({
          summary: "One of them; your own, and those in the capture box, with their text",
          description:
            "What another account mails is its own affair. The letters that the server writes by itself, such as login codes, are shown with their text only to somebody who has signed in, not to an API key.",
          answers: { 200: OutgoingMailDetailShape },
        }),
      },
    );
}

function doctorRoutes(app: App) {
  const examination = createExamination(app);
  return new Elysia()
    .use(administrators(app))
    .get("/admin/doctor", () => examination.read(), {
      ...describeAdmin({
        summary: "What the doctor is looking at, or has found last",
        answers: { 200: ExaminationShape },
      }),
    })
    .post(
      "/admin/doctor",
      ({ set }) => {
        set.status = 202;
        return examination.begin(() => refuseOverRate(app, "doctor", DOCTOR_RATE));
      },
      {
        ...describeAdmin({
          summary: "Look at everything that the server needs",
          description:
            "As `mailwright doctor` does, inside of the running server. It takes seconds; `GET /admin/doctor` tells how far it is. While it is looking, this begins nothing new.",
          answers: { 202: ExaminationShape },
        }),
      },
    );
}

function backupRoutes(app: App) {
  return new Elysia()
    .use(administrators(app))
    .get("/admin/backups", () => readBackups(app), {
      ...describeAdmin({
        summary: "The backups that there are, and when the next one is made",
        description:
          "They hold all mail and the keys to every stored credential, so they cannot be fetched from here: who may look into that folder may have them.",
        answers: { 200: BackupsShape },
        errors: ["unavailable"],
      }),
    })
    .post(
      "/admin/backups",
      ({ set }) => {
        set.status = 202;
        return beginBackup(app, () => refuseOverRate(app, "backup", BACKUP_RATE));
      },
      {
        ...describeAdmin({
          summary: "Make a backup now",
          description:
            "It is made while the server goes on; `GET /admin/backups` tells how far it is. While one is being made, this begins nothing new.",
          answers: { 202: BackupsShape },
          errors: ["unavailable"],
        }),
      },
    );
}
