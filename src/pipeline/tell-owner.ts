import type { App } from "../app.ts";
import { tellOwnerLater } from "../resources/billing/notices.ts";
import type { MessageRow } from "../db/schema.ts";
import type { PreparedReply } from "./reply.ts";

/**
 * A reply that tells the account's owner, at most once a day, of a failure that can no longer be told to its sender.
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
