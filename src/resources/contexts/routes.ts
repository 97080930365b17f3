import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { listAnswer } from "../../http/stream.ts";
import { contextPortions, createContext, deleteContext, patchContext, readContext } from "./contexts.ts";
import { MAX_VERSIONS } from "./kept-versions.ts";
import {
  contextBody,
  ContextShape,
  ContextVersionCardShape,
  ContextVersionShape,
  newContextBody,
  uploadBody,
} from "./shapes.ts";
import { uploadContext } from "./upload.ts";
import { deleteVersion, listVersions, readVersion, restoreVersion } from "./versions.ts";

const contextParams = t.Object({ context_id: t.String({ format: "uuid" }) });
const versionParams = t.Object({
  context_id: t.String({ format: "uuid" }),
  version: t.String({ maxLength: 36, description: "The number of a version.", examples: ["2"] }),
});

const VERSION = /^[1-9][0-9]{0,8}$/;

export function contextRoutes(app: App) {
  return new Elysia().use(collectionRoutes(app)).use(contextByIdRoutes(app)).use(versionRoutes(app));
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
          errors: ["plan_required", "plan_limit_reached", "storage_full", "slug_taken", "conflict"],
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

function versionRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get(
      "/contexts/:context_id/versions",
      ({ user, params }) => listVersions(app.db, user, params.context_id),
      {
        params: contextParams,
        ...describe({
          tag: "Contexts",
          summary: "What a context said before, newest first",
          description: `Each change of its title, body or kind makes a version. The newest ${MAX_VERSIONS} before the current one are kept, as long as the context is there, and as a tenth of what the plan stores is free.`,
          answers: { 200: t.Array(ContextVersionCardShape) },
        }),
      },
    )
    .get(
      "/contexts/:context_id/versions/:version",
      ({ user, params }) => readVersion(app.db, user, keyOf(params)),
      {
        params: versionParams,
        ...describe({
          tag: "Contexts",
          summary: "One version of a context",
          answers: { 200: ContextVersionShape },
        }),
      },
    )
    .post(
      "/contexts/:context_id/versions/:version/restore",
      ({ caller, params }) => restoreVersion(app, caller, keyOf(params)),
      {
        params: versionParams,
        ...describe({
          tag: "Contexts",
          summary: "Have a context say again what it said",
          description: "That becomes a new version; nothing is lost by it.",
          answers: { 200: ContextShape },
          errors: ["plan_required", "plan_limit_reached", "storage_full"],
        }),
      },
    )
    .delete(
      "/contexts/:context_id/versions/:version",
      async ({ caller, params, set }) => {
        await deleteVersion(app, caller, keyOf(params));
        set.status = 204;
      },
      {
        params: versionParams,
        ...describe({
          tag: "Contexts",
          summary: "Forget an earlier version",
          description: "As of a text that was never to be kept. Messages still name its number.",
          answers: { 204: null },
          errors: ["conflict"],
        }),
      },
    );
}

/** What is no number of a version is one that no context has. */
function keyOf({ context_id: id, version }: { context_id: string; version: string }) {
  return { id, version: VERSION.test(version) ? Number(version) : 0 };
}
