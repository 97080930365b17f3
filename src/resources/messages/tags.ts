import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import { afterCommit } from "../../db/database.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { AppError, invalid } from "../../errors.ts";
import { isLongerThan } from "../../lib/text-length.ts";
import { ownMessage } from "./messages.ts";

const MAX_TAGS = 20;
const MAX_TAG_CHARS = 100;
const TAG = /^[\p{L}\p{N}][\p{L}\p{N}_.-]*$/u;

/** Replaces the tags of a message of the user's own. They help to find it, and do nothing else. */
export async function tagMessage(
  app: App,
  user: UserRow,
  { id, tags: given }: { id: string; tags: string[] },
): Promise<void> {
  const tags = normalTags(given);
  await app.write(async (tx) => {
    const [message] = await ownMessage(tx, { user_id: user.id, id, since: historySince(app, user) });
    if (!message) throw new AppError("not_found", "There is no such message.");
    await tx
      .updateTable("messages")
      .set({ tags: JSON.stringify(tags) })
      .where("id", "=", id)
      .execute();
    afterCommit(tx, () => app.changes.tell(user.id, id));
  });
}

/** Tags without the sign before them; of several that differ in case alone, the first. */
function normalTags(given: string[]): string[] {
  const tags = new Map<string, string>();
  for (const [index, text] of given.entries()) {
    const tag = text.trim().normalize("NFC").replace(/^[#+]/, "");
    if (!TAG.test(tag) || isLongerThan(tag, MAX_TAG_CHARS))
      throw invalid(
        `body.tags.${index}`,
        "invalid_tag",
        `A tag is one word of at most ${MAX_TAG_CHARS} letters, digits, hyphens, dots and underscores.`,
      );
    if (!tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag);
  }
  if (tags.size > MAX_TAGS) throw invalid("body.tags", "too_many", `A message has at most ${MAX_TAGS} tags.`);
  return [...tags.values()];
}

/** The `+tag` of its recipient and the `#tags` of its instruction, each once. */
export function tagsOf({ command, tags }: Pick<MessageRow, "command" | "tags">): string[] {
  const given = storedJson<{ tags?: string[] }>(command ?? "{}", {});
  return [...new Set([...storedJson<string[]>(tags, []), ...(given.tags ?? [])])];
}
