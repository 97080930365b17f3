import type { Static } from "@sinclair/typebox";
import { t } from "elysia";
import { MAX_FILES } from "../files/sent-file.ts";

/**
 * A file as it comes in. Before the body is validated, `data` is replaced by the SHA-256 of the decoded bytes, in hex.
 */
const file = t.Object({
  filename: t.String({ minLength: 1, maxLength: 255 }),
  content_type: t.String({
    minLength: 1,
    maxLength: 255,
    pattern: "^[\\w.+-]+/[\\w.+-]+(\\s*;.*)?$",
    examples: ["text/plain"],
  }),
  data: t.String({ description: "Base64, at most 10 MB decoded; 25 MB for all files together." }),
});

/**
 * The body of a call. `runCall` checks the lengths of the texts: a schema here would count a surrogate pair, such as an
 * emoji, as two.
 */
export const callBody = t.Object({
  instruction: t.String({
    description:
      "What is to be done: 1 to 10,000 characters, the only words that are obeyed. `--model=NAME` asks another model: any on a connection of your own, and those that the operator allows on the connection of the server.",
    examples: ["Summarise this in one sentence"],
  }),
  content: t.Optional(
    t.String({
      description: "The text to work on, at most 500,000 characters; read and never obeyed.",
      examples: ["The bridge opens on 3 May, two weeks earlier than planned."],
    }),
  ),
  inbox_id: t.Optional(
    t.String({
      format: "uuid",
      description:
        "The inbox that it runs through; left out, that of its conversation, else the default one (`is_default`).",
    }),
  ),
  conversation_id: t.Optional(
    t.String({
      format: "uuid",
      description: "Goes on in this conversation, with memory of its earlier turns.",
    }),
  ),
  attachments: t.Optional(
    t.Array(file, {
      maxItems: MAX_FILES,
      examples: [
        [{ filename: "list.txt", content_type: "text/plain", data: "RWdncyBjb3N0IDMgZnJhbmNzLg==" }],
      ],
    }),
  ),
  metadata: t.Optional(
    t.Record(t.String(), t.String(), {
      description:
        "Notes of your own, such as the number of an order: at most 16 pairs of a key (1 to 64 letters, digits, dots, hyphens, underscores) and a text of at most 512 characters. They come back with the message and its events, and `GET /messages` finds them; no model reads them.",
      examples: [{ order: "4711" }],
    }),
  ),
  async: t.Optional(t.Boolean({ description: "True: answer 202 at once, and poll for the result." })),
});

export type CallInput = Static<typeof callBody>;
export type FileInput = Static<typeof file>;
