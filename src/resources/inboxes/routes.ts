import { LAST_SECOND } from "../../http/shapes.ts";
import { Elysia, t } from "elysia";
import { refuseUnverified } from "../accounts/verified.ts";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { downloadHeaders } from "../../http/download.ts";
import { refuseOverRate } from "../../http/request.ts";
import { inboxActivity } from "../messages/inbox-activity.ts";
import { inboxBody, newInboxBody } from "./body-shapes.ts";
import { cardOf, mailCard } from "./cards.ts";
import { createInbox, listInboxes, ownInbox, patchInbox, readInbox, rotateInbox } from "./inboxes.ts";
import { deleteInbox } from "./delete-inbox.ts";
import { CardSentShape, InboxActivityShape, InboxShape } from "./shapes.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../lib/durations.ts";

const params = t.Object({ inbox_id: t.String({ format: "uuid" }) });

const LIST = describe({ tag: "Inboxes", summary: "All inboxes", answers: { 200: t.Array(InboxShape) } });
const ACTIVITY = describe({
  tag: "Inboxes",
  summary: "What goes on in each inbox",
  answers: { 200: t.Array(InboxActivityShape) },
});
const READ = describe({ tag: "Inboxes", summary: "Read an inbox", answers: { 200: InboxShape } });

export function inboxRoutes(app: App) {
  return new Elysia().use(activityRoutes(app)).use(crudRoutes(app)).use(addressRoutes(app));
}

function activityRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/inboxes/activity", ({ user, query }) => inboxActivity(app, user, query.since), {
      query: t.Object({
        since: t.Optional(
          t.Integer({
            minimum: 0,
            maximum: LAST_SECOND,
            description:
              "Mails are counted from then on (unix seconds), and from two days ago at the most; by default those of the last 24 hours.",
            examples: [1_768_478_400],
          }),
        ),
      }),
      ...ACTIVITY,
    });
}

function crudRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/inboxes", ({ user }) => listInboxes(app, user), LIST)
    .post(
      "/inboxes",
      async ({ caller, body, set }) => {
        set.status = 201;
        return createInbox(app, caller, body);
      },
      {
        body: newInboxBody,
        ...describe({
          tag: "Inboxes",
          summary: "Make an inbox",
          description:
            "Its address is the prefix, or what the label says, and a random token; on a custom domain of yours with `domain_id`, where you may choose it whole with `local_part`.",
          answers: { 201: InboxShape },
          errors: ["plan_limit_reached", "conflict"],
        }),
      },
    )
    .get("/inboxes/:inbox_id", ({ user, params }) => readInbox(app, user, params.inbox_id), {
      params,
      ...READ,
    })
    .patch(
      "/inboxes/:inbox_id",
      ({ caller, params, body }) => patchInbox(app, caller, { id: params.inbox_id, settings: body }),
      {
        params,
        body: inboxBody,
        ...describe({
          tag: "Inboxes",
          summary: "Change an inbox",
          description: "Only the members of the body change; `null` clears those that may be empty.",
          answers: { 200: InboxShape },
          errors: ["plan_limit_reached", "conflict"],
        }),
      },
    )
    .delete(
      "/inboxes/:inbox_id",
      async ({ caller, params, set }) => {
        await deleteInbox(app, caller, params.inbox_id);
        set.status = 204;
      },
      {
        params,
        ...describe({
          tag: "Inboxes",
          summary: "Delete an inbox",
          description: "Mail to its address is refused from now on; its messages stay readable.",
          answers: { 204: null },
        }),
      },
    );
}

function addressRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .post(
      "/inboxes/:inbox_id/rotate",
      async ({ user, caller, params: { inbox_id } }) => {
        await ownInbox(app.db, user, inbox_id);
        const limit = app.config.limits.inbox_rotate_per_day;
        refuseOverRate(app, `rotate:${inbox_id}`, { limit, window_seconds: DAY_SECONDS });
        return rotateInbox(app, caller, inbox_id);
      },
      {
        params,
        ...describe({
          tag: "Inboxes",
          summary: "Give an inbox a new address",
          description:
            "The readable part stays, and one that you chose whole gets a random part. The old address refuses mail from now on, replies to it too, and nobody can ever have it again.",
          answers: { 200: InboxShape },
        }),
      },
    )
    .get(
      "/inboxes/:inbox_id/vcard",
      async ({ user, params, set }) => {
        const card = cardOf(await ownInbox(app.db, user, params.inbox_id));
        const headers = { ...set.headers, ...downloadHeaders(card) } as Record<string, string>;
        return new Response(card.bytes as Uint8Array<ArrayBuffer>, { headers });
      },
      {
        params,
        ...describe({
          tag: "Inboxes",
          summary: "Download the address as a contact card",
          answers: { 200: { content_type: "text/vcard", words: "A vCard in version 3.0, as a download." } },
        }),
      },
    )
    .post(
      "/inboxes/:inbox_id/email-vcard",
      async ({ user, params: { inbox_id } }) => {
        const inbox = await ownInbox(app.db, user, inbox_id);
        refuseUnverified(user);
        const limit = app.config.limits.vcard_mail_per_hour;
        refuseOverRate(app, `vcard:${user.id}`, { limit, window_seconds: HOUR_SECONDS });
        return mailCard(app, user, inbox);
      },
      {
        params,
        ...describe({
          tag: "Inboxes",
          summary: "Mail the contact card to yourself",
          answers: { 200: CardSentShape },
          errors: ["email_not_verified"],
        }),
      },
    );
}
