import type { Static } from "@sinclair/typebox";
import type { Caller } from "../accounts/sessions.ts";
import { noteChange } from "../accounts/changes.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { ContextRow, ContextVersionRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { type ContextView, ownContext, patchOwnContext } from "./contexts.ts";
import { MAX_VERSIONS } from "./kept-versions.ts";
import type { ContextVersionShape, ContextVersionCardShape } from "./shapes.ts";

type VersionCard = Static<typeof ContextVersionCardShape>;
type Version = Static<typeof ContextVersionShape>;

/** All versions of a context without their texts, newest first; the first is what it says now. */
export async function listVersions(db: Db, user: UserRow, id: string): Promise<VersionCard[]> {
  const row = await ownContext(db, user, id);
  const earlier = await db
    .selectFrom("context_versions")
    .select((eb) => [
      "version",
      "title",
      "kind",
      "created",
      eb.fn<number>("octet_length", ["body"]).as("size"),
    ])
    .where("context_id", "=", row.id)
    .orderBy("version", "desc")
    .execute();
  return [currentOf(row), ...earlier.map((one) => Object.assign(one, { current: false }))];
}

/** What a context said before, oldest first; each is read once it is asked for. */
export async function* earlierVersions(
  db: Db,
  context: Pick<ContextView, "id" | "version">,
): AsyncGenerator<ContextVersionRow> {
  for (let version = Math.max(1, context.version - MAX_VERSIONS); version < context.version; version += 1) {
    const row = await versionOf(db, { id: context.id, version });
    if (row) yield row;
  }
}

/** One version of a context; `not_found` where it is not kept. */
export async function readVersion(
  db: Db,
  user: UserRow,
  key: { id: string; version: number },
): Promise<Version> {
  const row = await ownContext(db, user, key.id);
  if (row.version === key.version) return { ...currentOf(row), body: row.body };
  const { version, title, body, kind, created } = await keptVersion(db, key);
  return { version, title, body, kind, created, size: Buffer.byteLength(body), current: false };
}

/** Has a context say again what a version of it said, as a new version. */
export async function restoreVersion(
  app: App,
  caller: Caller,
  key: { id: string; version: number },
): Promise<ContextView> {
  return app.write(async (tx) => {
    const row = await ownContext(tx, caller.user, key.id);
    const { title, body, kind } = row.version === key.version ? row : await keptVersion(tx, key);
    return patchOwnContext(app, tx, caller, { row, input: { title, body, kind } });
  });
}

/** Forgets an earlier version, as of a text that was never to be kept. What the context says now cannot be forgotten so. */
export async function deleteVersion(
  app: App,
  caller: Caller,
  key: { id: string; version: number },
): Promise<void> {
  await app.write(async (tx) => {
    const row = await ownContext(tx, caller.user, key.id);
    if (row.version === key.version) throw isCurrent();
    const { id } = await keptVersion(tx, key);
    await noteChange(app, tx, caller, "context_changed");
    await tx.deleteFrom("context_versions").where("id", "=", id).execute();
  });
}

function currentOf({ version, title, body, kind, version_created: created }: ContextRow): VersionCard {
  return { version, title, kind, created, size: Buffer.byteLength(body), current: true };
}

/** Its context has to be known to be the caller's own. */
async function keptVersion(
  db: Db,
  { id, version }: { id: string; version: number },
): Promise<ContextVersionRow> {
  const row = await versionOf(db, { id, version });
  if (row) return row;
  throw new AppError("not_found", "There is no such version of this context.", {
    fix: `Its page lists those that are kept (\`GET /contexts/${id}/versions\`): the newest ${MAX_VERSIONS} of each context.`,
  });
}

function versionOf(
  db: Db,
  { id, version }: { id: string; version: number },
): Promise<ContextVersionRow | undefined> {
  return db
    .selectFrom("context_versions")
    .selectAll()
    .where("context_id", "=", id)
    .where("version", "=", version)
    .executeTakeFirst();
}

function isCurrent(): AppError {
  return new AppError("conflict", "This version is what the context says now.", {
    fix: "Change the context first, or delete the whole context.",
  });
}
