import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { jsonAnswer } from "../../http/stream.ts";
import { pageQuery, pageShape } from "../../http/shapes.ts";
import { deleteConversation, restoreConversation } from "../messages/delete.ts";
import { listConversations, readConversation } from "./read.ts";
import { ConversationDetailShape, ConversationShape } from "./shapes.ts";

const params = t.Object({ conversation_id: t.String({ format: "uuid" }) });

export function conversationRoutes(app: App) {
  return new Elysia().use(readingRoutes(app)).use(deletingRoutes(app));
}

function readingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/conversations", ({ user, query }) => listConversations(app, user, query), {
      query: t.Object(pageQuery),
      ...describe({
        tag: "Conversations",
        summary: "The threads, the one with the latest reply first",
        description:
          "A thread that gets a reply while you page moves to the front: begin again without `cursor` to see it there.",
        answers: { 200: pageShape(ConversationShape) },
        errors: ["invalid_cursor"],
      }),
    })
    .get(
      "/conversations/:conversation_id",
      async ({ user, params, set: { headers } }) =>
        jsonAnswer(app, { who: user.id, headers }, await readConversation(app, user, params.conversation_id)),
      {
        params,
        ...describe({
          tag: "Conversations",
          summary: "A thread with its turns",
          description:
            "Shows what was commanded and what was replied, never what mails and files say. The newest 200 turns, fewer where they are longer than about 1 MB together, the oldest of them first; `GET /messages?conversation_id=…` pages through all.",
          answers: { 200: ConversationDetailShape },
        }),
      },
    );
}

function deletingRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .delete(
      "/conversations/:conversation_id",
      async ({ caller, params, set }) => {
        await deleteConversation(app, caller, params.conversation_id);
        set.status = 204;
      },
      {
        params,
        ...describe({
          tag: "Conversations",
          summary: "Delete a thread",
          description:
            "Deletes all of its messages, as `DELETE /messages/{message_id}` does one; none while one of them is being worked on.",
          answers: { 204: null },
          errors: ["conflict"],
        }),
      },
    )
    .post(
      "/conversations/:conversation_id/restore",
      async ({ user, params, set }) => {
        await restoreConversation(app, user, params.conversation_id);
        set.status = 204;
      },
      {
        params,
        ...describe({
          tag: "Conversations",
          summary: "Take the deletion of a thread back",
          description: "For 30 seconds at least; then it is `not_found`.",
          answers: { 204: null },
        }),
      },
    );
}
