import { Elysia, t } from "elysia";
import { isLetIn } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { downloadHeaders } from "../../http/download.ts";
import { refuseOverCallRate } from "../../http/request.ts";
import { jsonAnswer, STREAM_HEADERS } from "../../http/stream.ts";
import { pageQuery, pageShape, momentParameter } from "../../http/shapes.ts";
import { changeMessage } from "./change.ts";
import { deleteMessage, restoreMessage, UNDO_SECONDS } from "./delete.ts";
import { listMessages } from "./list.ts";
import { type Download, readAttachment, readRawMail } from "./messages.ts";
import { cancelMessage } from "../../pipeline/cancel.ts";
import { searchMessages } from "./search/search.ts";
import { replayRoutes } from "../replays/routes.ts";
import { testRunRoutes } from "../test-runs/routes.ts";
import { expectedBody } from "../test-runs/expected-shapes.ts";
import { readStory } from "./story.ts";
import { retryMessage } from "./retry.ts";
import { activityStatus, ActivityShape, LimitedShape, RunShape, source, StoryShape } from "./shapes.ts";
import { streamMessages } from "./stream.ts";

const POLL_SECONDS = 2;

const id = t.String({ format: "uuid" });

/** The longest pair of metadata there can be. */
const MAX_PAIR_CHARS = 64 + 1 + 2 * 512;

const filters = {
  status: t.Optional(activityStatus),
  source: t.Optional(source),
  inbox_id: t.Optional(id),
  conversation_id: t.Optional(id),
  since: momentParameter("since", "Accepted at this moment or later, in unix seconds."),
  until: momentParameter("until", "Accepted at this moment or earlier, in unix seconds."),
  q: t.Optional(
    t.String({
      minLength: 1,
      maxLength: 200,
      description:
        'What to look for: words, all of which have to stand in the subject, sender, instruction, result, material or text of files. A word of three letters or more also finds those that begin with it; upper and lower case and accents are the same. `"two words"` is a phrase, `in*` any word that begins so, `-word` must not stand there. `from:`, `to:`, `subject:` and `tag:` look there alone; `has:file`, `before:2026-03-31` and `after:2026-03-01` (days of the clock of the account) filter. At most 32 words, those of phrases included.',
      examples: ['invoice from:ada "is paid" after:2026-01-01'],
    }),
  ),
  sort: t.Optional(
    t.Union([t.Literal("date"), t.Literal("rank")], {
      description:
        "With `q`: `date` has the newest first, `rank` those that fit best, among the newest 500 that fit.",
    }),
  ),
  tag: t.Optional(
    t.String({
      minLength: 1,
      maxLength: 100,
      description: "A `#tag` of the instruction, or the `+tag` of the recipient.",
      examples: ["q3"],
    }),
  ),
  metadata: t.Optional(
    t.String({
      maxLength: MAX_PAIR_CHARS,
      description: "A pair of its `metadata`, as KEY:VALUE.",
      examples: ["order:4711"],
    }),
  ),
};

export function messageRoutes(app: App) {
  return new Elysia()
    .use(readingRoutes(app))
    .use(changingRoutes(app))
    .use(replayRoutes(app))
    .use(testRunRoutes(app));
}

function readingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get(
      "/messages",
      async ({ user, query: { q, ...query }, set: { headers } }) =>
        jsonAnswer(
          app,
          { who: user.id, headers },
          await (q === undefined
            ? listMessages(app, user, query)
            : searchMessages(app, user, { ...query, q })),
        ),
      { query: t.Object({ ...pageQuery, ...filters }), ...LIST },
    )
    .get(
      "/messages/stream",
      ({ user, session, key_id, request, set }) => {
        const headers = { ...set.headers, ...STREAM_HEADERS } as Record<string, string>;
        if (request.method === "HEAD") return new Response(null, { headers });
        const mayStay = () => isLetIn(app, app.db, { session, key_id });
        const stream = streamMessages(app, user, { mayStay, gone: request.signal });
        return new Response(stream, { headers });
      },
      STREAM,
    )
    .get(
      "/messages/:message_id",
      async ({ user, params, set: { headers } }) =>
        jsonAnswer(app, { who: user.id, headers }, await readStory(app, user, params.message_id)),
      { params: t.Object({ message_id: id }), ...STORY },
    )
    .get(
      "/messages/:message_id/attachments/:attachment_id",
      async ({ user, params, set }) => download(set.headers, await readAttachment(app, user, params)),
      { params: t.Object({ message_id: id, attachment_id: id }), ...ATTACHMENT },
    )
    .get(
      "/messages/:message_id/raw",
      async ({ user, params, set }) => download(set.headers, await readRawMail(app, user, params.message_id)),
      { params: t.Object({ message_id: id }), ...RAW },
    )
    .post(
      "/messages/:message_id/retry",
      async ({ user, key_id, params, set }) => {
        const admit = () => refuseOverCallRate(app, user);
        const { view, resets_at } = await retryMessage(app, user, { id: params.message_id, key_id, admit });
        if (resets_at !== undefined) {
          set.status = 429;
          return { ...view, code: "credit_limit", credits: { ...view.credits, resets_at } };
        }
        set.status = 202;
        set.headers["location"] = `/v1/messages/${view.message_id}`;
        set.headers["retry-after"] = String(POLL_SECONDS);
        return view;
      },
      { params: t.Object({ message_id: id }), ...RETRY },
    );
}

/** The routes by which an owner changes a message. */
function changingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .patch(
      "/messages/:message_id",
      async ({ user, params: { message_id }, body, set: { headers } }) => {
        await changeMessage(app, user, { id: message_id, change: body });
        return jsonAnswer(app, { who: user.id, headers }, await readStory(app, user, message_id));
      },
      { params: t.Object({ message_id: id }), body: changeBody, ...CHANGE },
    )
    .delete(
      "/messages/:message_id",
      async ({ caller, params, set }) => {
        await deleteMessage(app, caller, params.message_id);
        set.status = 204;
      },
      { params: t.Object({ message_id: id }), ...DELETE },
    )
    .post(
      "/messages/:message_id/restore",
      async ({ user, params, set }) => {
        await restoreMessage(app, user, params.message_id);
        set.status = 204;
      },
      { params: t.Object({ message_id: id }), ...RESTORE },
    )
    .post("/messages/:message_id/cancel", ({ user, params }) => cancelMessage(app, user, params.message_id), {
      params: t.Object({ message_id: id }),
      ...CANCEL,
    });
}

const LIST = describe({
  tag: "Messages",
  summary: "The activity log, newest first",
  description:
    "All filters that are given must hold; `rejected` also finds what was left out. A page looks at 2,000 messages at most, and shows about 1 MB: where a combination of filters finds little, or results are long, or older messages are not taken into the search yet, it may have fewer items than `limit`, or none, and still a `next_cursor`. Only `next_cursor: null` says that there is nothing more.",
  answers: { 200: pageShape(ActivityShape) },
  errors: ["invalid_cursor"],
});

const STREAM = describe({
  tag: "Messages",
  summary: "What happens to your messages, as it happens",
  description:
    "Server-sent events, from now on: `message`, with a message as `GET /messages` shows it, whenever one is made, changes its status, or its reply does; `changed` when you had better look yourself, as so much happened, or something did just before the stream opened (then with `seconds_ago`). A comment comes when nothing else does. It ends after an hour, when the server stops, and when the key or session is revoked: a browser comes back by itself, and whoever was away looks at `GET /messages` first. Five at most for each account.",
  answers: { 200: { content_type: "text/event-stream", words: "Events, for as long as you listen." } },
  errors: ["rate_limited", "unavailable"],
});

const STORY = describe({
  tag: "Messages",
  summary: "The story of one message",
  description:
    "All that the activity log shows of it, and what was read as instruction and what as data, its reply, and what was sent to webhooks about it.",
  answers: { 200: StoryShape },
});

const ATTACHMENT = describe({
  tag: "Messages",
  summary: "Download a file of a message",
  answers: { 200: { content_type: "application/octet-stream", words: "The bytes, always as a download." } },
  errors: ["content_lost"],
});

const RAW = describe({
  tag: "Messages",
  summary: "Download a mail as it came in",
  description: "Only what came by mail has one, and only until the retention of raw mails deletes it.",
  answers: { 200: { content_type: "message/rfc822", words: "The mail, always as a download." } },
  errors: ["content_lost"],
});

const RETRY = describe({
  tag: "Messages",
  summary: "Try a failed message again, or mail its answer again",
  description:
    "Makes a new message of the same text, files and sender; its `retry_of` names the first of all tries. A mail is answered by mail as usual. Only a `failed` message can be tried again (`may_retry` of a message says so, and `tried_again` what has become of another try), or a mail that was over a limit, or anything that was over a budget (`limited`), or one of yours or of a listed sender that was left out because it came too often (`loop_cap`), or one that a rule of yours keeps (`kept_by_rule`), and of its retries only one may be running or done. Calls of tools that may have changed something are not made again: the retry is told what earlier tries called and what came of it, as its steps say, and goes on from there. Of a message that is `done` and whose answer came back or was not sent (`reply_status` is `bounced` or `suppressed`), that very answer is mailed again while its mail is kept, also to an address that got no more answers; the message stays the same one, and nothing is charged. One that a rule has wait, or that waits for its next try because its model has failed for the moment, is worked on at once, and stays the same one too.",
  answers: { 202: RunShape },
  limited: LimitedShape,
  errors: ["conflict", "plan_limit_reached", "inbox_paused", "storage_full", "content_lost"],
  answer_headers: {
    Location: "Where the result will be.",
    "Retry-After": "Seconds until it is worth asking.",
  },
});

const changeBody = t.Object({
  tags: t.Optional(
    t.Array(t.String({ maxLength: 200 }), {
      maxItems: 100,
      description: "At most 20, one word each; they take the place of those that it has.",
      examples: [["q3", "paid"]],
    }),
  ),
  expected: t.Optional(expectedBody),
});

const CHANGE = describe({
  tag: "Messages",
  summary: "Give a message other tags, or star it",
  description:
    "Tags help to find it (`GET /messages?tag=…`). With `expected` it is starred: it belongs to the test set, which `POST /v1/test-runs` runs. Neither does anything else.",
  answers: { 200: StoryShape },
  errors: ["conflict", "storage_full"],
});

const DELETE = describe({
  tag: "Messages",
  summary: "Delete a message",
  description: `It is gone from every list at once, and erased with its mail, files and answer soon after ${UNDO_SECONDS} seconds, in which \`POST /messages/{message_id}/restore\` brings it back. What is still on its way, an answer or a webhook, gets there first. What it cost stays counted, the same mail is not worked on a second time, and an Idempotency-Key that made it makes it no second time. What is being worked on is cancelled first (409).`,
  answers: { 204: null },
  errors: ["conflict"],
});

const RESTORE = describe({
  tag: "Messages",
  summary: "Take the deletion of a message back",
  description: `For ${UNDO_SECONDS} seconds at least; then it is \`not_found\`.`,
  answers: { 204: null },
});

const CANCEL = describe({
  tag: "Messages",
  summary: "Cancel a message that is not done yet",
  description:
    "Ends it whether it waits or is being worked on: from then on it is `failed` with the reason `cancelled`, costs nothing, and can be tried again. A call that a tool is at may still be done there; the steps name it, and no retry makes it a second time. A listed sender is told by mail, you are not. Asked for a second time it changes nothing; 409 says that the message had ended before.",
  answers: { 200: RunShape },
  errors: ["conflict"],
});

function download(sent: object, file: Download): Response {
  const headers = { ...sent, ...downloadHeaders(file) } as Record<string, string>;
  return new Response(file.body as Blob | Uint8Array<ArrayBuffer>, { headers });
}
