import { Elysia, t } from "elysia";
import { refuseUnverified } from "../resources/accounts/verified.ts";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";
import { describe } from "../http/describe.ts";
import { refuseOverRate } from "../http/request.ts";
import { ownInbox } from "../resources/inboxes/inboxes.ts";
import { refusePaused } from "../resources/inboxes/pause.ts";
import { refuseResting } from "../resources/inboxes/room.ts";
import { rulesBody } from "../resources/inboxes/rules/rule-shapes.ts";
import { InboxTestShape, RulesTriedShape } from "../resources/inboxes/shapes.ts";
import { testInbox } from "./inbox-test.ts";
import { tryRules } from "./try-rules.ts";
import { HOUR_SECONDS, MINUTE_SECONDS } from "../lib/durations.ts";

const MAX_TEST_CHARS = 10_000;
const MAX_TEST_CONTENT_CHARS = 100_000;

const testMembers = {
  instruction: t.Optional(t.String({ maxLength: MAX_TEST_CHARS, examples: ["Summarise this"] })),
  content: t.Optional(t.String({ maxLength: MAX_TEST_CONTENT_CHARS, examples: ["All is well."] })),
};
const rulesMembers = { rules: t.Optional(rulesBody) };
const params = t.Object({ inbox_id: t.String({ format: "uuid" }) });

export function inboxTestRoutes(app: App) {
  return new Elysia().use(testRoutes(app)).use(ruleRoutes(app));
}

const TRIES = { limit: 20, window_seconds: MINUTE_SECONDS };

function ruleRoutes(app: App) {
  return new Elysia().use(authenticated(app)).post(
    "/inboxes/:inbox_id/rules/try",
    async ({ user, params: { inbox_id }, body }) => {
      const inbox = await ownInbox(app.db, user, inbox_id);
      refuseOverRate(app, `try-rules:${user.id}`, TRIES);
      return tryRules(app, user, { inbox, rules: body?.rules });
    },
    {
      params,
      body: t.Nullable(t.Object(rulesMembers, { additionalProperties: true })),
      ...describe({
        tag: "Inboxes",
        summary: "See what rules would have done",
        description:
          "Holds rules, or without a body those that the inbox has, against its newest 100 mails whose content is still here. Nothing is changed, and no model is asked: a rule with a question that was not asked of a mail before counts as not for it, and stands in `asks`.",
        optional_body: t.Object(rulesMembers),
        answers: { 200: RulesTriedShape },
      }),
    },
  );
}

function testRoutes(app: App) {
  return new Elysia().use(authenticated(app)).post(
    "/inboxes/:inbox_id/test",
    async ({ user, caller, params: { inbox_id }, body }) => {
      const inbox = await ownInbox(app.db, user, inbox_id);
      refuseUnverified(user);
      await refuseResting(app, app.db, user, inbox);
      refusePaused(inbox);
      // The limit is per account, because test runs are free and inboxes are quickly made.
      const limit = app.config.limits.inbox_test_per_hour;
      refuseOverRate(app, `test:${user.id}`, { limit, window_seconds: HOUR_SECONDS });
      return testInbox(app, caller, { ...body, inbox });
    },
    {
      params,
      // Elysia drops unknown members from an object, but not from one that may also be null.
      body: t.Nullable(t.Object(testMembers, { additionalProperties: true })),
      ...describe({
        tag: "Inboxes",
        summary: "Send a test mail through an inbox",
        description:
          "A mail from you to the inbox goes through the real pipeline at once: the answer is here, and in your mail. It costs no credits. `content` stands for material that the model reads and never obeys.",
        optional_body: t.Object(testMembers),
        answers: { 200: InboxTestShape },
        errors: ["email_not_verified", "plan_limit_reached", "inbox_paused", "storage_full"],
      }),
    },
  );
}
