import type { App } from "../app.ts";
import { hasEarlierMessages } from "../resources/conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import { packed } from "../db/packed-row.ts";
import type { MessageRow } from "../db/schema.ts";
import { eraseLater } from "../jobs/erase.ts";
import { rangesOf, type SegmentRange } from "../lib/segments.ts";
import { areForgotten } from "../resources/messages/forgotten.ts";
import { NO_BYTES } from "../resources/messages/stored-bytes.ts";
import type { Command } from "./command.ts";
import { type StepDraft, warningStep } from "./steps.ts";

/**
 * Placeholder for words that were not kept. It is for readers only, and no code may test for it: a sender may write the
 * same.
 */
export const PRIVATE_WORDS = "(private)";

const NOT_KEPT = "This was private: its instruction, material, result and files were not kept.";
const HANDED_OVER = "A mail that answers it is deleted here once it has been handed over.";
const CAPTURED = "A mail that answers it stays here, where outgoing mail is captured.";

/** What is left of a message whose words `--private` does not let the server keep. */
export function withoutWords(command: Command, steps: StepDraft[], captures: boolean) {
  const { target, contexts, tags, macro } = command;
  const kept: Command = { target, contexts, tags, macro, command: "", options: { private: true }, raw: "" };
  return {
    result: "",
    instruction: "",
    command: kept,
    steps: [
      ...steps.filter(({ type }) => type !== "warning").map(nameOnly),
      warningStep(`${NOT_KEPT} ${captures ? CAPTURED : HANDED_OVER}`),
    ],
  };
}

function nameOnly({ type, server, name, status }: StepDraft): StepDraft {
  return {
    type,
    output: "",
    ...(server === undefined ? {} : { server }),
    ...(name === undefined || type === "extract" ? {} : { name }),
    ...(status === undefined ? {} : { status }),
  };
}

/** Deletes what a message was about, which is never read again: its subject, its material and its raw mail. */
export async function forgetMaterial(app: App, tx: Db, message: MessageRow): Promise<void> {
  const { id, conversation_id } = message;
  await tx.updateTable("messages").set({ subject: PRIVATE_WORDS }).where("id", "=", id).execute();
  if (conversation_id !== null && !(await hasEarlierMessages(tx, message)))
    await tx
      .updateTable("conversations")
      .set({ subject: PRIVATE_WORDS })
      .where("id", "=", conversation_id)
      .execute();
  await forgetContent(app, tx, message);
}

/** Deletes the material of a message, and its raw mail unless another message is made of it. */
export async function forgetContent(app: App, tx: Db, message: MessageRow): Promise<void> {
  const purged_at = app.now();
  const { id, raw_mail_id } = message;
  await tx
    .updateTable("message_contents")
    .set({ content: null, purged_at, ...packed("message_contents") })
    .where("message_id", "=", id)
    .execute();
  await tx.deleteFrom("tool_calls").where("message_id", "=", id).execute();
  const ranges = await forgetFiles(tx, id, purged_at);
  if (raw_mail_id !== null) ranges.push(...(await forgetMail(tx, { id, raw_mail_id }, purged_at)));
  await eraseLater(app, tx, ranges);
}

async function forgetFiles(tx: Db, message_id: string, purged_at: number): Promise<SegmentRange[]> {
  const files = await tx
    .selectFrom("attachments")
    .select(["segment", "segment_offset", "size"])
    .where("message_id", "=", message_id)
    .execute();
  await tx
    .updateTable("attachments")
    .set({ ...NO_BYTES, purged_at })
    .where("message_id", "=", message_id)
    .execute();
  return files.flatMap(rangesOf);
}

/**
 * Deletes the raw mail, unless another message was made of it that still has to be worked on, or keeps what it was
 * about.
 */
async function forgetMail(
  tx: Db,
  { id, raw_mail_id }: { id: string; raw_mail_id: string },
  purged_at: number,
): Promise<SegmentRange[]> {
  const other = await tx
    .selectFrom("messages")
    .select("id")
    .where("raw_mail_id", "=", raw_mail_id)
    .where("id", "!=", id)
    .where((eb) => eb.not(areForgotten(eb)))
    .executeTakeFirst();
  if (other) return [];
  const mails = await tx
    .selectFrom("raw_mails")
    .select(["segment", "segment_offset", "size"])
    .where("id", "=", raw_mail_id)
    .execute();
  await tx
    .updateTable("raw_mails")
    .set({ ...NO_BYTES, purged_at, ...packed("raw_mails") })
    .where("id", "=", raw_mail_id)
    .execute();
  return mails.flatMap(rangesOf);
}
