import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { listAnswer } from "../../http/stream.ts";
import { contextPortions, createContext, deleteContext, patchContext, readContext } from "./contexts.ts";
import { contextBody, ContextShape, newContextBody, uploadBody } from "./shapes.ts";
import { uploadContext } from "./upload.ts";

const contextParams = t.Object({ context_id: t.String({ format: "uuid" }) });

export function contextRoutes(app: App) {
  return new Elysia().use(collectionRoutes(app)).use(contextByIdRoutes(app));
}

function collectionRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get(
      "/contexts",
      ({ user, set }) => listAnswer(app, { who: user.id, headers: set.headers }, contextPortions(app, user)),
      describe({
        tag: "Contexts",
        summary: "All contexts, oldest first",
        answers: { 200: t.Array(ContextShape) },
      }),
    )
    .post(
      "/contexts",
      async ({ caller, body: input, set }) => {
        set.status = 201;
        return createContext(app, caller, input);
      },
      {
        body: newContextBody,
        ...describe({
          tag: "Contexts",
          summary: "Make a context",
          description: "Without a slug, one is made from the title.",
          answers: { 201: ContextShape },
          errors: ["plan_required", "plan_limit_reached", "storage_full", "slug_taken"],
        }),
      },
    )
    .post(
      "/contexts/upload",
      async ({ caller, body: upload, set }) => {
        set.status = 201;
        return uploadContext(app, caller, upload);
      },
      {
        body: uploadBody,
        ...describe({
          tag: "Contexts",
          summary: "Make a context of a Markdown file",
          description:
            "UTF-8, at most 256 KB. The title is the first `# heading`, else the name of the file; the whole file becomes the body; the kind is `instruction` unless a part named `kind` says otherwise. It is for every inbox unless parts named `inbox_ids` name some.",
          answers: { 201: ContextShape },
          errors: ["plan_required", "plan_limit_reached", "storage_full"],
        }),
      },
    );
}

function contextByIdRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get("/contexts/:context_id", ({ user, params }) => readContext(app.db, user, params.context_id), {
      params: contextParams,
      ...describe({ tag: "Contexts", summary: "One context", answers: { 200: ContextShape } }),
    })
    .patch(
      "/contexts/:context_id",
      ({ caller, params, body: input }) => patchContext(app, caller, { id: params.context_id, input }),
      {
        params: contextParams,
        body: contextBody,
        ...describe({
          tag: "Contexts",
          summary: "Change a context",
          description: "Only the given members change. A new title leaves the slug as it is.",
          answers: { 200: ContextShape },
          errors: ["plan_required", "plan_limit_reached", "storage_full", "slug_taken"],
        }),
      },
    )
    .delete(
      "/contexts/:context_id",
      async ({ caller, params, set }) => {
        await deleteContext(app, caller, params.context_id);
        set.status = 204;
      },
      {
        params: contextParams,
        ...describe({
          tag: "Contexts",
          summary: "Delete a context",
          description: "Inboxes that worked by it go on without it.",
          answers: { 204: null },
        }),
      },
    );
}
