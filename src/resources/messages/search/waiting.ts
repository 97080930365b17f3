import type { App } from "../../../app.ts";
import type { Db } from "../../../db/database.ts";
import type { MessageRow } from "../../../db/schema.ts";
import { NOT_DONE } from "../../../db/unfinished.ts";
import { addressOf } from "../../inboxes/addresses.ts";
import { isPrivate } from "../forgotten.ts";
import { tagsOf } from "../tags.ts";
import { type Fields, fitsQuery } from "./fits.ts";
import type { SearchQuery } from "./query.ts";
import { tagWord } from "./texts.ts";

/** The most messages that one page looks at beside the index, and the most text that it reads of them. */
const MAX_LOOKED_AT = 2_000;
const MAX_READ_CHARS = 4 * 1_048_576;
const READ_AT_ONCE = 25;
/** As much of a field as is indexed. */
const MAX_FIELD_CHARS = 24_576;

/** Ids from `from`, which is included, to `below`, which is not. */
interface Range {
  from: string;
  below: string;
}

/** What was found, newest first; `reached` is the id down to which everything was looked at if that is not the whole range. */
export interface Waiting {
  found: string[];
  reached?: string;
}

interface Looked {
  query: SearchQuery;
  range: Range;
  count: number;
  /** Returns those of the ids that fit all other filters. */
  others: (ids: string[]) => Promise<string[]>;
}

/**
 * Finds messages of an account that are not in the index: those that are worked on, and those that wait to be indexed. What
 * they came with is not read, only what the server knows of them.
 */
export async function findWaiting(
  app: App,
  user_id: string,
  { query, range, count, others }: Looked,
): Promise<Waiting> {
  const ids = await waitingIds(app.db, user_id, range);
  const found: string[] = [];
  const inboxes = query.terms.some((term) => term.in === "to") ? await inboxesOf(app.db, user_id) : new Map();
  let room = MAX_READ_CHARS;
  for (let at = 0; at < ids.length; at += READ_AT_ONCE) {
    const some = ids.slice(at, at + READ_AT_ONCE);
    const left = await others(some);
    const rows = await app.reads({ who: user_id }, () => readRows(app.db, left));
    const fit = rows.filter(
      (row) => !isPrivate(row) && hasFile(query, row) && fitsQuery(query, fieldsOf(row, inboxes)),
    );
    found.push(...fit.map(({ id }) => id));
    room -= rows.reduce((sum, row) => sum + (row.instruction ?? "").length + row.result.length, 0);
    if (found.length >= count) return { found };
    const reached = some.at(-1);
    if (room <= 0 && reached !== undefined) return { found, reached };
  }
  const reached = ids.length === MAX_LOOKED_AT ? ids.at(-1) : undefined;
  return reached === undefined ? { found } : { found, reached };
}

async function waitingIds(db: Db, user_id: string, { from, below }: Range): Promise<string[]> {
  const ended = db
    .selectFrom("unindexed_messages")
    .select("message_id as id")
    .where("user_id", "=", user_id)
    .where("message_id", "<", below)
    .where("message_id", ">=", from);
  const working = db
    .selectFrom("messages")
    .select("messages.id")
    .where("user_id", "=", user_id)
    .where("state", "=", "received")
    .where(NOT_DONE)
    .where("id", "<", below)
    .where("id", ">=", from);
  const rows = await ended.unionAll(working).orderBy("id", "desc").limit(MAX_LOOKED_AT).execute();
  return rows.map(({ id }) => id);
}

type Row = Awaited<ReturnType<typeof readRows>>[number];

function readRows(db: Db, ids: string[]) {
  return db
    .selectFrom("messages")
    .select(["id", "inbox_id", "subject", "sender", "command", "tags", "state", "reason"])
    .select((eb) => [
      eb.fn<string | null>("substr", ["instruction", eb.lit(1), eb.lit(MAX_FIELD_CHARS)]).as("instruction"),
      eb.fn<string>("substr", ["result", eb.lit(1), eb.lit(MAX_FIELD_CHARS)]).as("result"),
      eb
        .exists(eb.selectFrom("attachments").select("id").whereRef("message_id", "=", "messages.id"))
        .as("has_file"),
    ])
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
}

function hasFile({ has_file }: SearchQuery, row: Row): boolean {
  return !has_file || Boolean(row.has_file);
}

function fieldsOf(row: Row, inboxes: Map<string, string>): Fields {
  return { ...knownFields(row), recipient: inboxes.get(row.inbox_id ?? "") ?? "" };
}

/** What the row of a message says in the fields of the index. */
export function knownFields(
  row: Pick<MessageRow, "subject" | "sender" | "instruction" | "result" | "command" | "tags">,
): Fields {
  return {
    subject: row.subject ?? "",
    sender: row.sender ?? "",
    tags: tagsOf(row).map(tagWord).join(" "),
    instruction: row.instruction ?? "",
    result: row.result,
  };
}

async function inboxesOf(db: Db, user_id: string): Promise<Map<string, string>> {
  const inboxes = db.selectFrom("inboxes").select(["id", "label", "local_part", "domain"]);
  const rows = await inboxes.where("user_id", "=", user_id).execute();
  return new Map(rows.map((row) => [row.id, `${row.label} ${addressOf(row)}`]));
}
