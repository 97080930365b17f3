import type { App } from "../app.ts";
import { tellOwnerLater } from "../resources/billing/notices.ts";
import type { MessageRow } from "../db/schema.ts";
import type { PreparedReply } from "./reply.ts";

/** For a failure of which its sender cannot be told any more: the owner of the account is, once a day at most. */
export function tellOwnerInstead(app: App, message: Pick<MessageRow, "id" | "user_id">): PreparedReply {
  const { id: message_id, user_id } = message;
  return {
    async queue(tx) {
      await tellOwnerLater(app, tx, { user_id, kind: "failure_untold", message_id });
      return "none";
    },
  };
}
