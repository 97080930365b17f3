import type { Db } from "../../db/database.ts";
import { SOFT_REASONS } from "../../mail/reading/machine-mail.ts";

interface Window {
  user_id: string;
  inbox_id: string | null;
  since: string;
  up_to: string;
}

/**
 * Returns what a digest says about mail to many that came in meanwhile and was left out, as its inbox works on none: no rule
 * has looked at it, and nothing of it is kept. Null where there was none.
 */
export async function bulkLeftOut(db: Db, window: Window): Promise<string | null> {
  const { user_id, inbox_id, since, up_to } = window;
  let rows = db
    .selectFrom("messages")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user_id)
    .where("id", ">", since)
    .where("id", "<=", up_to)
    .where("state", "=", "skipped")
    .where("reason", "in", [...SOFT_REASONS]);
  if (inbox_id !== null) rows = rows.where("inbox_id", "=", inbox_id);
  const { count } = await rows.executeTakeFirstOrThrow();
  if (count === 0) return null;
  const [mails, them] = count === 1 ? ["1 mail", "it"] : [`${count} mails`, "them"];
  return `${mails} from lists and machines came in meanwhile and had been left out before any rule looked at ${them}, so this digest leaves ${them} out. Turn on “Work on newsletters and list mail” of the inbox to have such mail in the next one.`;
}
