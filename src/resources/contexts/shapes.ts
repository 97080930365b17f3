import { type Static, Type } from "@sinclair/typebox";
import { t } from "elysia";
import { moment } from "../../http/shapes.ts";

/** The most inboxes in a body: more than any plan allows. */
const MAX_INBOXES = 1_000;

export const contextMembers = {
  title: t.String({ minLength: 1, description: "1 to 200 characters.", examples: ["Brand voice"] }),
  body: t.String({
    minLength: 1,
    description: "Markdown, at most 262,144 bytes.",
    examples: ["# Brand voice\n\nPlain words, short sentences, no exclamation marks."],
  }),
  kind: t.Union([t.Literal("instruction"), t.Literal("knowledge"), t.Literal("command")], {
    description:
      "`instruction` always applies, `knowledge` where it fits or is named as `+slug`, `command` is a macro called as `$slug` (Pro and Team).",
  }),
  slug: t.String({
    description: "1 to 64 lower-case letters, digits and single hyphens; `+slug` names the context.",
    examples: ["brand-voice"],
  }),
  enabled: t.Boolean({ description: "A context that is not enabled is never used." }),
  inbox_ids: t.Nullable(
    t.Array(t.String({ format: "uuid" }), {
      maxItems: MAX_INBOXES,
      description:
        "The inboxes that it is for. Mail of strangers to these gets it too, and to others never. Null: every inbox that does not choose its contexts itself.",
    }),
    { examples: [null] },
  ),
};

const { title, body, kind, slug, enabled, inbox_ids } = contextMembers;
const optional = { slug: t.Optional(slug), enabled: t.Optional(enabled), inbox_ids: t.Optional(inbox_ids) };

export const newContextBody = t.Object({ title, body, kind, ...optional });
export const contextBody = t.Object({
  title: t.Optional(title),
  body: t.Optional(body),
  kind: t.Optional(kind),
  ...optional,
  // Elysia's own kind of integer would take no body for an empty object.
  version: t.Optional(
    Type.Integer({
      minimum: 1,
      description:
        "As you have read it: if the context says something else since, the change is refused (409) before anything is replaced.",
    }),
  ),
});

/** The parts of a form (RFC 7578 §4.3): one inbox is one part, and several are so many parts of the same name. */
export const uploadBody = t.Object({
  file: t.File(),
  kind: t.Optional(kind),
  inbox_ids: t.Optional(
    t.Union(
      [t.String({ format: "uuid" }), t.Array(t.String({ format: "uuid" }), { maxItems: MAX_INBOXES })],
      { description: "The inboxes that it is for, each in a part of its own. Without: every inbox." },
    ),
  ),
});

export type Upload = Omit<Static<typeof uploadBody>, "file"> & { file: Blob & { name?: string } };
export type NewContext = Static<typeof newContextBody>;
export type ContextPatch = Static<typeof contextBody>;
/** What both a new context and a patch may set. */
export type ContextInput = Omit<ContextPatch, "version">;

export const ContextShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    ...contextMembers,
    size: t.Integer({ minimum: 1, description: "Bytes of the body.", examples: [66] }),
    version: t.Integer({
      minimum: 1,
      description: "Counts how often its title, body or kind was written anew.",
      examples: [3],
    }),
    created: moment("When it was made"),
    updated: moment("When it was last changed"),
  },
  { $id: "Context", description: "A standing document that your inboxes work by." },
);

const versionMembers = {
  version: t.Integer({ minimum: 1, examples: [3] }),
  title,
  kind,
  size: t.Integer({ minimum: 1, description: "Bytes of the body.", examples: [66] }),
  current: t.Boolean({ description: "Whether the context says this now." }),
  created: moment("When it was written"),
};

export const ContextVersionCardShape = t.Object(versionMembers, {
  $id: "ContextVersionCard",
  description: "What a context says, or said, without its text.",
});

export const ContextVersionShape = t.Object(
  { ...versionMembers, body },
  { $id: "ContextVersion", description: "What a context says, or said before it was changed." },
);

export const UsedContextShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    slug: t.String({ examples: ["brand-voice"] }),
    version: t.Integer({ minimum: 1, examples: [3] }),
  },
  { $id: "UsedContext" },
);
export type UsedContext = Static<typeof UsedContextShape>;
