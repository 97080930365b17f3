import type { Db } from "../../db/database.ts";
import { closestName } from "../../lib/closest-name.ts";
import { inboxById } from "../inboxes/inboxes.ts";
import { rulesOf } from "../inboxes/rules/rules.ts";
import type { Over } from "./view.ts";

/** Returns why a digest reads nothing any more: its inbox has been deleted, or its rule is not there; null where it may read. */
export async function whyNothingToRead(db: Db, user_id: string, over: Over): Promise<string | null> {
  const { inbox_id } = over;
  if (inbox_id !== null && (await inboxById(db, { id: inbox_id })).length === 0)
    return "The inbox whose mail it reads has been deleted.";
  return whyNoRule(db, user_id, over);
}

/**
 * Returns why a digest would read nothing for ever: no inbox that it is over has a rule of the name it says; null where one
 * has, and where it names none.
 */
export async function whyNoRule(db: Db, user_id: string, { inbox_id, rule }: Over): Promise<string | null> {
  if (rule === null) return null;
  let inboxes = db
    .selectFrom("inboxes")
    .select("rules")
    .where("user_id", "=", user_id)
    .where("deleted_at", "is", null);
  if (inbox_id !== null) inboxes = inboxes.where("id", "=", inbox_id);
  const names = (await inboxes.execute()).flatMap((inbox) => rulesOf(inbox).map(({ name }) => name));
  if (names.includes(rule)) return null;
  const near = closestName(rule, names);
  const meant = near === undefined ? "" : ` Did you mean "${near}"?`;
  return `${inbox_id === null ? "No inbox of yours has a" : "The inbox has no"} rule called "${rule}".${meant}`;
}
