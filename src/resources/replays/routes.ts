import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { refuseOverCallRate } from "../../http/request.ts";
import { createReplay, deleteReplay, listReplays, MAX_REPLAYS, readReplay } from "./replays.ts";
import { replayBody, ReplayCardShape, ReplayShape } from "./shapes.ts";

const id = t.String({ format: "uuid" });
const ofMessage = t.Object({ message_id: id });
const ofReplay = t.Object({ message_id: id, replay_id: id });

const ABOUT = `With another model, other words or other contexts, beside the run that counts: nothing is mailed, no event is sent, and no tool is called. What tools said in the run before is answered from its steps, as far as they show it. It costs what a run costs. ${MAX_REPLAYS} replays of a message are kept, as long as the message is.`;

export function replayRoutes(app: App) {
  return new Elysia().use(makingRoutes(app)).use(readingRoutes(app));
}

function makingRoutes(app: App) {
  return new Elysia().use(authenticated(app)).post(
    "/messages/:message_id/replay",
    async ({ user, key_id, params: { message_id }, body, set }) => {
      const admit = (): void => refuseOverCallRate(app, user);
      const view = await createReplay(app, { user, key_id }, { id: message_id, asked: body ?? {}, admit });
      set.status = 202;
      set.headers["location"] = `/messages/${message_id}/replays/${view.id}`;
      return view;
    },
    {
      params: ofMessage,
      // Elysia drops unknown members from an object, but not from one that may also be null.
      body: t.Nullable(t.Object(replayBody, { additionalProperties: true })),
      ...describe({
        tag: "Messages",
        summary: "Run a message again, otherwise",
        description: ABOUT,
        optional_body: t.Object(replayBody),
        answers: { 202: ReplayShape },
        answer_headers: { Location: "Where the result will be." },
        errors: [
          "conflict",
          "content_lost",
          "email_not_verified",
          "inbox_paused",
          "plan_limit_reached",
          "storage_full",
        ],
      }),
    },
  );
}

function readingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/messages/:message_id/replays", ({ user, params }) => listReplays(app, user, params.message_id), {
      params: ofMessage,
      ...describe({
        tag: "Messages",
        summary: "The replays of a message, without their results",
        answers: { 200: t.Array(ReplayCardShape) },
      }),
    })
    .get("/messages/:message_id/replays/:replay_id", ({ user, params }) => readReplay(app, user, params), {
      params: ofReplay,
      ...describe({ tag: "Messages", summary: "One replay", answers: { 200: ReplayShape } }),
    })
    .delete(
      "/messages/:message_id/replays/:replay_id",
      async ({ user, params, set }) => {
        await deleteReplay(app, user, params);
        set.status = 204;
      },
      {
        params: ofReplay,
        ...describe({
          tag: "Messages",
          summary: "Delete a replay",
          description: "One that is not done yet comes to nothing then, and costs nothing.",
          answers: { 204: null },
        }),
      },
    );
}
