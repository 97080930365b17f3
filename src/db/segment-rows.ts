import { sql } from "kysely";
import type { SegmentRange } from "../lib/segments.ts";
import type { Db } from "./group-commit.ts";

/** The tables whose rows reference bytes in the segment files. */
export const KEEPERS = ["raw_mails", "attachments"] as const;
export type Keeper = (typeof KEEPERS)[number];

/** A segment file, with the extent of the ranges that rows reference in it. */
export interface NamedSegment {
  segment: number;
  /** The end of the last range that rows reference or that waits to be erased, in bytes. */
  end: number;
  /** How many bytes rows reference. */
  bytes: number;
}

export async function namedSegments(db: Db): Promise<NamedSegment[]> {
  const { rows } = await sql<NamedSegment>`select segment, max("end") as "end", sum(bytes) as bytes from (
      ${sumsOf("raw_mails")} union all ${sumsOf("attachments")} union all ${WAITING} group by 1
    ) group by segment order by segment`.execute(db);
  return rows;
}

const sumsOf = (keeper: Keeper) =>
  sql`select segment, max(segment_offset + size) as "end", sum(size) as bytes from ${sql.table(keeper)}
    where segment is not null group by segment`;

/** Ranges that jobs are still to erase. A job with a damaged payload is left out; the sweep finds its range. */
const WAITING = sql`
  select part.value ->> 'segment' as segment, max((part.value ->> 'offset') + (part.value ->> 'size')) as "end", 0 as bytes
  from jobs, json_each(iif(json_valid(jobs.payload), jobs.payload, '{}'), '$.ranges') as part
  where jobs.kind = 'erase_bytes'`;

/** Returns the ranges that rows reference in a segment, in order. */
export async function namedIn(db: Db, segment: number): Promise<SegmentRange[]> {
  const { rows } = await sql<SegmentRange>`${rangesIn("raw_mails", segment)}
    union all ${rangesIn("attachments", segment)} order by "offset"`.execute(db);
  return rows;
}

const rangesIn = (keeper: Keeper, segment: number) =>
  sql`select segment, segment_offset as "offset", size from ${sql.table(keeper)} where segment = ${segment}`;

/** Returns how many places in segments the index of a table has, and none of its rows. */
export async function placesOfIndexAlone(db: Db, keeper: Keeper): Promise<number> {
  const places = (by: string) => sql`select segment, segment_offset, size from ${sql.table(keeper)}
    ${sql.raw(by)} where segment is not null`;
  const { rows } = await sql<{ places: number }>`select count(*) as places from
    (${places(`indexed by ${keeper}_segment`)} except ${places("not indexed")})`.execute(db);
  return rows[0]?.places ?? 0;
}

/** A segment whose file ends at `size`; what is referenced behind that is missing. */
interface Short {
  segment: number;
  size: number;
}

/** Marks rows that reference bytes behind the end of a file. Returns how many it marked. */
export async function markBehind(tx: Db, short: Short[], now: number): Promise<number> {
  let marked = 0n;
  for (const one of short)
    for (const keeper of KEEPERS) {
      const update = sql`update ${sql.table(keeper)} set lost_at = ${now} where ${behind(one)}`;
      marked += (await update.execute(tx)).numAffectedRows ?? 0n;
    }
  return Number(marked);
}

/** Counts of rows whose bytes are lost. */
export interface LostRows {
  mails: number;
  files: number;
  bytes: number;
}

/** Counts the rows that are marked as lost. */
export function lostRows(db: Db): Promise<LostRows> {
  return countWhere(db, sql`lost_at is not null`);
}

/** Returns how many rows have no checksum to compare their bytes with, because an earlier version wrote them. */
export async function uncheckedRows(db: Db): Promise<number> {
  const { mails, files } = await countWhere(
    db,
    sql`segment is not null and checksum is null and lost_at is null`,
  );
  return mails + files;
}

/** Counts the rows that `markBehind` would mark. */
export async function countBehind(db: Db, short: Short[]): Promise<LostRows> {
  const all = { mails: 0, files: 0, bytes: 0 };
  for (const one of short) {
    const { mails, files, bytes } = await countWhere(db, behind(one));
    all.mails += mails;
    all.files += files;
    all.bytes += bytes;
  }
  return all;
}

const behind = ({ segment, size }: Short) =>
  sql`segment = ${segment} and segment_offset + size > ${size} and lost_at is null`;

async function countWhere(db: Db, where: ReturnType<typeof behind>): Promise<LostRows> {
  const { rows } =
    await sql<LostRows>`select sum(mail) as mails, count(*) - sum(mail) as files, sum(size) as bytes
    from (select 1 as mail, size from raw_mails where ${where} union all select 0, size from attachments where ${where})
    having count(*) > 0`.execute(db);
  return rows[0] ?? { mails: 0, files: 0, bytes: 0 };
}
