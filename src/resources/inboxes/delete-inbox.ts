import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import { eraseRestLater } from "../../jobs/erase.ts";
import { addressOf, retireAddress } from "./addresses.ts";
import { leaveDefault } from "./default-inbox.ts";
import { ownInbox } from "./inboxes.ts";
import { lookAtWaitingLater, resumeLater } from "./pause.ts";
import { NOTHING_SET } from "./settings.ts";

/** Rows of each table that names an inbox which one step changes. */
const ROWS = 50;

/**
 * Deletes an inbox: mail to it is refused from now on, and its address is never given out again. Where many messages
 * name it, a job takes it off them some at a time.
 */
export async function deleteInbox(app: App, caller: Caller, id: string): Promise<void> {
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "inbox_deleted");
    const row = await ownInbox(tx, caller.user, id);
    await retireAddress(app, tx, addressOf(row));
    await tx
      .updateTable("inboxes")
      .set({ ...nobodys(row.id), deleted_at: app.now() })
      .where("id", "=", row.id)
      .execute();
    await leaveDefault(tx, caller.user, row.id);
    // Mail that waited for it must not wait for ever: it ends, and its senders are told.
    if (row.paused !== null) await resumeLater(app, tx, row.id);
    await lookAtWaitingLater(app, tx, row.id);
    if (await clearInbox(tx, row)) await eraseRestLater(app, tx, { inbox_id: row.id });
  });
}

/** The columns of a deleted inbox: nothing can be sent to it, and it uses no connection, context or domain any more. */
function nobodys(id: string) {
  return {
    label: "",
    prefix: null,
    local_part: id,
    domain: "",
    domain_id: null,
    ...NOTHING_SET,
    context_ids: null,
    named: 0,
  };
}

/** Takes a deleted inbox off some rows that name it, and deletes it once there are none. False once it is gone. */
export async function clearInbox(tx: Db, { id }: { id: string }): Promise<boolean> {
  const cleared = [
    await leaveMessages(tx, { id }),
    await leaveConversations(tx, { id }),
    await forgetMails(tx, { id }),
  ];
  if (cleared.some(({ length }) => length === ROWS)) return true;
  await tx.deleteFrom("inboxes").where("id", "=", id).where("deleted_at", "is not", null).execute();
  return false;
}

const leaveMessages = prepared((db, inbox: { id: string }) =>
  db
    .updateTable("messages")
    .set({ inbox_id: null })
    .where("id", "in", (eb) =>
      eb.selectFrom("messages").select("id").where("inbox_id", "=", inbox.id).limit(ROWS),
    )
    .returning("id"),
);

const leaveConversations = prepared((db, inbox: { id: string }) =>
  db
    .updateTable("conversations")
    .set({ inbox_id: null })
    .where("id", "in", (eb) =>
      eb.selectFrom("conversations").select("id").where("inbox_id", "=", inbox.id).limit(ROWS),
    )
    .returning("id"),
);

const forgetMails = prepared((db, inbox: { id: string }) =>
  db
    .deleteFrom("mail_keys")
    .where("inbox_id", "=", inbox.id)
    .where("key_hash", "in", (eb) =>
      eb.selectFrom("mail_keys").select("key_hash").where("inbox_id", "=", inbox.id).limit(ROWS),
    )
    .returning("created"),
);
