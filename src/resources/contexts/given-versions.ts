import type { Db } from "../../db/database.ts";
import type { ContextRow, UserRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";

/** What a context said in one of its versions. */
export type GivenVersion = Pick<ContextRow, "id" | "slug" | "title" | "kind" | "body" | "version">;

/** Throws `validation_error` for the first of these versions that is not one of the user's own contexts, or not kept. */
export async function refuseUnkeptVersions(
  db: Db,
  user: Pick<UserRow, "id">,
  versions: Record<string, number>,
): Promise<void> {
  const wanted = Object.entries(versions).map(([id, version]) => ({ id, version }));
  const kept = await versionsOf(db, user, wanted);
  const missing = wanted.find(({ id }) => !kept.has(id));
  if (missing === undefined) return;
  throw invalid(
    `body.context_versions.${missing.id}`,
    "version_not_found",
    "There is no such version of a context of yours. Its page lists those that are kept (`GET /contexts/{context_id}/versions`).",
  );
}

/** Returns those of these versions of the user's own contexts that are kept, by the id of the context. */
export async function versionsOf(
  db: Db,
  { id: user_id }: Pick<UserRow, "id">,
  wanted: Pick<GivenVersion, "id" | "version">[],
): Promise<Map<string, GivenVersion>> {
  if (wanted.length === 0) return new Map();
  const current = await db
    .selectFrom("contexts")
    .select(["id", "slug", "title", "kind", "body", "version"])
    .where("user_id", "=", user_id)
    .where(
      "id",
      "in",
      wanted.map(({ id }) => id),
    )
    .execute();
  const slugs = new Map(current.map(({ id, slug }) => [id, slug]));
  const now = current.filter((row) =>
    wanted.some(({ id, version }) => row.id === id && row.version === version),
  );
  const past = wanted.filter(({ id }) => slugs.has(id) && !now.some((row) => row.id === id));
  const earlier = await (past.length === 0 ? [] : earlierOf(db, past));
  return new Map([...now, ...earlier].map((row) => [row.id, { ...row, slug: slugs.get(row.id) ?? row.id }]));
}

function earlierOf(db: Db, wanted: Pick<GivenVersion, "id" | "version">[]) {
  return db
    .selectFrom("context_versions")
    .select(["context_id as id", "title", "kind", "body", "version"])
    .where((eb) =>
      eb.or(
        wanted.map(({ id, version }) => eb.and([eb("context_id", "=", id), eb("version", "=", version)])),
      ),
    )
    .execute();
}
