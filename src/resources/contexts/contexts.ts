import { randomBytes } from "node:crypto";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { refuseBelowPlan, refuseBeyondPlan, refuseOverCap } from "../billing/plans.ts";
import { freeFor, refuseFull, type Storage, storageOf } from "../billing/storage.ts";
import type { Db } from "../../db/database.ts";
import { BODY_BYTES } from "../../db/row-bytes.ts";
import type { ContextRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { oneLine } from "../../lib/one-line.ts";
import { portionsOf } from "../../lib/portions.ts";
import { cutSlug, slugOf } from "../../lib/slug.ts";
import { isLongerThan } from "../../lib/text-length.ts";
import type { ContextInput, ContextPatch, NewContext } from "./shapes.ts";
import { isAnotherVersion, keepVersion } from "./kept-versions.ts";
import { type ContextList, contextLists, inboxesFor, leaveInboxes, setInboxes } from "./scope.ts";

export const MAX_TITLE_CHARS = 200;
export const MAX_BODY_BYTES = 262_144;
const MAX_SLUG_CHARS = 64;
const SLUG_FORM = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const UNNAMED_SLUG_BYTES = 2;

export type ContextView = ReturnType<typeof viewContext>;

/** All contexts of a user, oldest first, in portions, each of which is read once it is asked for. */
export async function* contextPortions(app: App, user: UserRow): AsyncGenerator<ContextView[]> {
  const lists = await contextLists(app.db, user);
  const sizes = await ownContexts(app.db, user)
    .select(["id", BODY_BYTES.as("bytes")])
    .orderBy("id")
    .execute();
  for (const portion of portionsOf(sizes))
    yield await app.reads({ who: user.id }, async () => {
      const ids = portion.map(({ id }) => id);
      const rows = await ownContexts(app.db, user).selectAll().where("id", "in", ids).orderBy("id").execute();
      // Others have their turn before the next portion.
      await Bun.sleep(0);
      return rows.map((row) => viewContext(row, lists));
    });
}

export async function readContext(db: Db, user: UserRow, id: string): Promise<ContextView> {
  return viewContext(await ownContext(db, user, id), await contextLists(db, user));
}

export async function createContext(app: App, caller: Caller, input: NewContext): Promise<ContextView> {
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "context_created");
    return addContext(app, tx, caller.user, input);
  });
}

/** As `createContext`, in the transaction of the caller. */
export async function addContext(app: App, tx: Db, user: UserRow, input: NewContext): Promise<ContextView> {
  const columns = columnsOf(input);
  refuseKind(user, input.kind);
  const slugs = await slugsOf(tx, user);
  refuseOverCap(app, user, "contexts", { wanted: slugs.size + 1 });
  if (input.slug !== undefined && slugs.has(input.slug)) throw slugTaken(input.slug);
  await refuseFull(app, tx, user, Buffer.byteLength(columns.body ?? ""));
  const row: ContextRow = {
    id: app.newId(),
    user_id: user.id,
    title: "",
    body: "",
    kind: input.kind,
    slug: freeSlug(columns.title ?? "", slugs),
    enabled: 1,
    every_inbox: 1,
    created: app.now(),
    updated: app.now(),
    version: 1,
    version_created: app.now(),
    ...columns,
  };
  await tx.insertInto("contexts").values(row).execute();
  if (input.inbox_ids) await setInboxes(tx, user, { context_id: row.id, inbox_ids: input.inbox_ids });
  return viewContext(row, await contextLists(tx, user));
}

/**
 * Changes a context as RFC 7396 has it: absent members stay as they are. The slug never follows the title, because
 * mails name it.
 */
export async function patchContext(
  app: App,
  caller: Caller,
  { id, input: { version, ...input } }: { id: string; input: ContextPatch },
): Promise<ContextView> {
  return app.write(async (tx) => {
    const row = await ownContext(tx, caller.user, id);
    if (version !== undefined && version !== row.version) throw contextChanged();
    return patchOwnContext(app, tx, caller, { row, input });
  });
}

function contextChanged(): AppError {
  return new AppError("conflict", "This context has been changed since you read it.", {
    fix: "Read it again (reload the page), and make your change to what is there now.",
  });
}

/** As `patchContext`, in the transaction of the caller, of a row that is known to be the user's own. */
export async function patchOwnContext(
  app: App,
  tx: Db,
  caller: Caller,
  { row, input }: { row: ContextRow; input: ContextInput },
): Promise<ContextView> {
  const { user } = caller;
  const columns = columnsOf(input);
  if (Object.keys(columns).length === 0) return viewContext(row, await contextLists(tx, user));
  await noteChange(app, tx, caller, "context_changed");
  if (!isOnlySwitchedOff(columns)) await refuseSurplus(app, tx, user, row);
  const changed = { ...row, ...columns, updated: app.now() };
  refuseKind(user, changed.kind);
  if (changed.slug !== row.slug && (await slugsOf(tx, user)).has(changed.slug)) throw slugTaken(changed.slug);
  if (isAnotherVersion(changed, row)) {
    const size = Buffer.byteLength(changed.body);
    const growth = size - Buffer.byteLength(row.body);
    // A nearly full account keeps the new one alone, so that making it smaller makes room.
    if (hasAmpleRoom(await storageOf(app, tx, user), size)) await keepVersion(app, tx, row);
    else if (growth > 0) await refuseFull(app, tx, user, growth);
    changed.version += 1;
    changed.version_created = app.now();
  }
  await tx.updateTable("contexts").set(changed).where("id", "=", row.id).execute();
  const { inbox_ids } = input;
  if (inbox_ids !== undefined) await setInboxes(tx, user, { context_id: row.id, inbox_ids });
  return viewContext(changed, await contextLists(tx, user));
}

/** Whether a tenth of what an account may store is left beside `bytes` more. */
function hasAmpleRoom(storage: Storage, bytes: number): boolean {
  return freeFor(storage, "household") - bytes >= (storage.limit_bytes ?? 0) / 10;
}

/** Deletes a context; inboxes that used it go on without it. */
export async function deleteContext(app: App, caller: Caller, id: string): Promise<void> {
  const { user } = caller;
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "context_deleted");
    await ownContext(tx, user, id);
    await leaveInboxes(tx, user, id);
    await tx.deleteFrom("contexts").where("id", "=", id).execute();
  });
}

/** The slugs of a user's contexts, each with the id of its context. */
export async function slugsOf(db: Db, user: UserRow): Promise<Map<string, string>> {
  const rows = await ownContexts(db, user).select(["id", "slug"]).execute();
  return new Map(rows.map((row) => [row.slug, row.id]));
}

function isOnlySwitchedOff({ enabled, ...others }: Partial<ContextRow>): boolean {
  return enabled === 0 && Object.keys(others).length === 0;
}

/** Throws for a context beyond the plan: such contexts stay in use, and cannot be changed. */
async function refuseSurplus(app: App, tx: Db, user: UserRow, { id }: ContextRow): Promise<void> {
  const ids = [...(await slugsOf(tx, user)).values()].sort();
  const rank = ids.indexOf(id) + 1;
  refuseBeyondPlan(app, user, "contexts", { rank, count: ids.length });
}

function viewContext(row: ContextRow, lists: ContextList[]) {
  return {
    id: row.id,
    title: row.title,
    body: row.body,
    kind: row.kind,
    slug: row.slug,
    enabled: row.enabled === 1,
    inbox_ids: inboxesFor(row, lists),
    size: Buffer.byteLength(row.body),
    version: row.version,
    created: row.created,
    updated: row.updated,
  };
}

function ownContexts(db: Db, user: UserRow) {
  return db.selectFrom("contexts").where("user_id", "=", user.id);
}

/** The user's own context, or `not_found`, whether it is unknown or somebody else's. */
export async function ownContext(db: Db, user: UserRow, id: string): Promise<ContextRow> {
  const row = await ownContexts(db, user).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such context.");
  return row;
}

/** The columns that the given members set. */
function columnsOf({ title, body, kind, slug, enabled, inbox_ids }: ContextInput): Partial<ContextRow> {
  return {
    ...(title === undefined ? {} : { title: checkedTitle(title) }),
    ...(body === undefined ? {} : { body: checkedBody(body) }),
    ...(kind === undefined ? {} : { kind }),
    ...(slug === undefined ? {} : { slug: checkedSlug(slug) }),
    ...(enabled === undefined ? {} : { enabled: enabled ? 1 : 0 }),
    ...(inbox_ids === undefined ? {} : { every_inbox: inbox_ids === null ? 1 : 0 }),
  };
}

function checkedTitle(text: string): string {
  const title = oneLine(text);
  if (title === "") throw invalid("body.title", "too_short", "The title must not be blank.");
  if (isLongerThan(title, MAX_TITLE_CHARS))
    throw invalid("body.title", "too_long", `The title must have at most ${MAX_TITLE_CHARS} characters.`);
  return title;
}

function checkedBody(text: string): string {
  const body = text.toWellFormed();
  if (Buffer.byteLength(body) <= MAX_BODY_BYTES) return body;
  throw invalid("body.body", "too_long", `The body must have at most ${MAX_BODY_BYTES} bytes (256 KB).`);
}

function checkedSlug(slug: string): string {
  if (slug.length <= MAX_SLUG_CHARS && SLUG_FORM.test(slug)) return slug;
  throw invalid(
    "body.slug",
    "invalid_slug",
    `A slug is 1 to ${MAX_SLUG_CHARS} lower-case letters, digits and single hyphens, such as brand-voice.`,
  );
}

function refuseKind(user: UserRow, kind: ContextRow["kind"]): void {
  if (kind === "command") refuseBelowPlan(user, "pro", "A context of the kind command");
}

function slugTaken(slug: string): AppError {
  return new AppError("slug_taken", `You already have a context with the slug ${slug}.`, {
    fix: "Choose another slug, or leave it out and one is made from the title.",
  });
}

/** A slug made of the title, with a number behind it if another context has it. */
function freeSlug(title: string, taken: ReadonlyMap<string, string>): string {
  const base =
    cutSlug(slugOf(title), MAX_SLUG_CHARS) || `context-${randomBytes(UNNAMED_SLUG_BYTES).toString("hex")}`;
  let slug = base;
  for (let number = 2; taken.has(slug); number += 1) {
    const ending = `-${number}`;
    slug = cutSlug(base, MAX_SLUG_CHARS - ending.length) + ending;
  }
  return slug;
}
