import { factsOf } from "./states.ts";
import type { AttachmentRow, MessageRow } from "../../db/schema.ts";
import { asAmount } from "../../lib/money.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { rulesFound, waitsUntil } from "./rules-found.ts";
import { metadataOf } from "./metadata.ts";
import { tagsOf } from "./tags-of.ts";

export type AttachmentMeta = Omit<AttachmentRow, "bytes" | "segment" | "segment_offset" | "checksum">;

export interface AttachmentView {
  id: string;
  direction: "in" | "out";
  filename: string;
  content_type: string;
  size: number;
  url: string;
  purged?: true;
  lost?: true;
}

/** The steps that are shown in place of ones that cannot be read. */
export const DAMAGED = [
  {
    index: 0,
    type: "warning",
    status: "error",
    output:
      "The steps of this message cannot be read: the database is damaged there. `mailwright doctor` on the server says more.",
  },
];

/** A message as the activity log shows it: what was asked for and what came of it, never its content. */
export function viewActivity(row: MessageRow, attachments: AttachmentMeta[]) {
  return {
    message_id: row.id,
    conversation_id: row.conversation_id,
    inbox_id: row.inbox_id,
    source: row.source,
    status: factsOf(row.state).activity,
    command: row.command === null ? null : storedJson<unknown>(row.command, null),
    result: row.result,
    error: row.state === "skipped" ? `skipped: ${row.error ?? row.reason}` : row.error,
    reason: row.reason,
    usage: usageOf(row),
    cost: asAmount(row.cost),
    steps: storedJson<unknown[]>(row.steps, DAMAGED),
    attachments: attachments.map(viewAttachment),
    subject: row.subject,
    sender: row.sender,
    auth: row.auth === null ? null : authOf(row.auth),
    model: row.model,
    credits_charged: row.credits_charged,
    reply_status: row.reply_status,
    reply_error: row.reply_error,
    duplicates: row.duplicates,
    mails: row.mails,
    retry_of: row.retry_of,
    schedule_id: row.schedule_id,
    approval_id: row.approval_id,
    tags: tagsOf(row),
    rules: rulesFound(row).matched ?? [],
    waits_until: waitsUntil(row),
    metadata: metadataOf(row),
    created: row.created,
    completed: row.completed,
    duration_ms: row.duration_ms,
    waited_ms: rulesFound(row).waited_ms ?? null,
  };
}

export type ActivityView = ReturnType<typeof viewActivity>;

/** A message in the shape of the answer to a call. */
export function viewRun(row: MessageRow, attachments: AttachmentMeta[], remaining: number) {
  const waits_until = waitsUntil(row);
  return {
    message_id: row.id,
    conversation_id: row.conversation_id,
    source: row.source,
    status: factsOf(row.state).run,
    result: row.result,
    error: row.error,
    usage: usageOf(row),
    cost: asAmount(row.cost),
    steps: storedJson<unknown[]>(row.steps, DAMAGED),
    attachments: attachments.filter((file) => file.direction === "out").map(viewAttachment),
    ...(waits_until === null ? {} : { waits_until }),
    credits: { charged: row.credits_charged, remaining },
    reply_status: row.reply_status,
    subject: row.subject,
    metadata: metadataOf(row),
    created: row.created,
  };
}

export type RunView = ReturnType<typeof viewRun>;

export function usageOf({
  input_tokens,
  output_tokens,
}: Pick<MessageRow, "input_tokens" | "output_tokens">): {
  input_tokens: number;
  output_tokens: number;
} | null {
  return input_tokens === null || output_tokens === null ? null : { input_tokens, output_tokens };
}

export function viewAttachment(file: AttachmentMeta): AttachmentView {
  return {
    id: file.id,
    direction: file.direction,
    filename: file.filename,
    content_type: file.content_type,
    size: file.size,
    url: `/messages/${file.message_id}/attachments/${file.id}`,
    ...(file.purged_at === null ? {} : { purged: true as const }),
    ...(file.lost_at === null ? {} : { lost: true as const }),
  };
}

/** What was found out about a mail, without the part that only says how this server has to read it. */
function authOf(stored: string): Record<string, unknown> {
  const { signed_form: _, in_thread: __, ...auth } = storedJson<Record<string, unknown>>(stored, {});
  return auth;
}
