import type { App } from "../app.ts";
import { tellOwnerLater } from "../jobs/tell-later.ts";
import type { MessageRow } from "../db/schema.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import type { PreparedReply } from "./reply.ts";

/** Reasons for which a model gave no answer that lie in what it was sent or in its owner, not in the model. */
export const OF_ITS_TEXTS = new Set<string | null>(["input_too_long", "content_filtered", "cancelled"]);

/**
 * Whether the owner is to be told of a failed mail where its sender is not: else mail of customers could fail for days
 * without anybody knowing. What strangers may bring about by what they write is only listed in the activity.
 */
export function isOwnersMatter(
  { source, authority, approval_id }: Pick<MessageRow, "source" | "authority" | "approval_id">,
  reason: MessageRow["reason"],
): boolean {
  return (
    (source === "email" || approval_id !== null) &&
    (hasAuthority({ authority }) || !(OF_ITS_TEXTS.has(reason) || reason === "inbox_deleted"))
  );
}

/**
 * A reply that tells the account's owner, at most once a day, of a failure that its sender is not told of.
 */
export function tellOwnerInstead(app: App, message: Pick<MessageRow, "id" | "user_id">): PreparedReply {
  const { id: message_id, user_id } = message;
  return {
    async queue(tx) {
      await tellOwnerLater(app, tx, { user_id, kind: "failure_untold", message_id });
      return "none";
    },
  };
}
