import type { App } from "../../app.ts";
import { afterCommit } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { normalTags } from "../../lib/tags.ts";
import { historySince } from "../billing/plans.ts";
import { checkedExpected, type GivenExpected } from "../test-runs/expected.ts";
import { starMessage } from "../test-runs/stars.ts";
import { ownMessage } from "./messages.ts";

/** What its owner may change of a message. None of it changes what has become of the message. */
interface MessageChange {
  /** They take the place of those that it has, and help to find it. */
  tags?: string[];
  /** What its answer should be, which stars it; null takes the star away. */
  expected?: GivenExpected | null;
}

/** Changes a message of the user's own. */
export async function changeMessage(
  app: App,
  user: UserRow,
  { id, change }: { id: string; change: MessageChange },
): Promise<void> {
  const { tags, expected } = change;
  if (tags === undefined && expected === undefined)
    throw invalid("body", "nothing", "There is nothing to change: give `tags`, `expected`, or both.");
  const normal = tags === undefined ? undefined : JSON.stringify(normalTags(tags));
  const star = expected === undefined || expected === null ? expected : await checkedExpected(expected);
  await app.write(async (tx) => {
    const [message] = await ownMessage(tx, { user_id: user.id, id, since: historySince(app, user) });
    if (!message) throw new AppError("not_found", "There is no such message.");
    if (normal !== undefined)
      await tx.updateTable("messages").set({ tags: normal }).where("id", "=", id).execute();
    if (star !== undefined) await starMessage(app, tx, user, { id, expected: star });
    afterCommit(tx, () => app.changes.tell(user.id, id));
  });
}
