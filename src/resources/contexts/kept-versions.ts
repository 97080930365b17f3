import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ContextRow } from "../../db/schema.ts";

/** Earlier versions of one context that are kept: a program that changes one each minute must not fill an account. */
export const MAX_VERSIONS = 200;

/** What a version of a context is made of. Whether it is in use, and where, is not. */
type Content = Pick<ContextRow, "title" | "body" | "kind">;

/** Whether a change makes a new version. */
export function isAnotherVersion(now: Content, before: Content): boolean {
  return now.title !== before.title || now.body !== before.body || now.kind !== before.kind;
}

/** Keeps what a context says, before it says something else; the oldest versions beyond the bound go. */
export async function keepVersion(app: App, tx: Db, row: ContextRow): Promise<void> {
  const { id: context_id, user_id, title, body, kind, version, version_created: created } = row;
  await tx
    .insertInto("context_versions")
    .values({ id: app.newId(), user_id, context_id, version, title, body, kind, created })
    .execute();
  await tx
    .deleteFrom("context_versions")
    .where("context_id", "=", context_id)
    .where("version", "<=", version - MAX_VERSIONS)
    .execute();
}
