import type Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";
import { isUnread, OF_ONE_ROW } from "./integrity.ts";
import { isIndexDamage } from "./storage-faults.ts";
import { isOfTextIndex, isSetAside } from "./text-index.ts";

const MAX_FAULTS = 1_000;

/** What is damaged in a database, and what can be done about it. */
export interface Damage {
  /** All that SQLite finds, the index of words apart; empty for a sound database. */
  faults: string[];
  /** Indexes of damaged tables that have all of their rows: they can be made anew from these. */
  indexes: string[];
  /** Whether the index of words is damaged: it can be made anew from the messages. */
  text_index: boolean;
  /** One sentence for each table of which rows are lost, or cannot be read. */
  lost: string[];
  /** Whether only what SQLite notes of free room is wrong, in which nothing is looked up. */
  is_worn: boolean;
}

/** Lines about free room in pages, and about pages that nothing uses. */
const OF_ROOM =
  /^(?:\*\*\* in database|(?:Tree \d+ page \d+: )?(?:Fragmentation of |free space corruption)|Page \d+: never used)/;
const HEADING = /^\*\*\* in database/;
const FRAGMENTS = /Fragmentation of (\d+) bytes reported as (\d+) on page (\d+)/;

/** Lines about pages that nothing uses. They belong to no table, and no table's own look finds them. */
const OF_FREE_LIST = /^Freelist/i;

/**
 * Examines a database table by table: SQLite's own words do not always name the index or the table that a page is of, and
 * where it can say nothing at all, one table is the cause, and the others are well. What is damaged of the index of words, or
 * was damaged of an earlier one, is no damage of the database.
 */
export function examine(sqlite: Sqlite.Database): Damage {
  const whole = lookAt(sqlite);
  const damage: Damage = { faults: whole.faults, indexes: [], text_index: false, lost: [], is_worn: false };
  if (whole.faults.length === 0) return damage;
  const tables = tablesOf(sqlite);
  const found = tables
    .filter((table) => !isOfTextIndex(table) && !isSetAside(table))
    .map((table) => examineTable(sqlite, table));
  const of_index = tables.filter(isOfTextIndex).map((table) => lookAt(sqlite, table));
  const set_aside = tables.filter(isSetAside).map((table) => lookAt(sqlite, table));
  damage.text_index =
    whole.is_of_index || of_index.some(({ faults }) => faults.length > 0 && !isUnread(faults));
  damage.faults = faultsBeside(whole, { of_index: [...of_index, ...set_aside], found });
  damage.indexes.push(...found.flatMap(({ indexes }) => indexes));
  damage.lost.push(...found.flatMap(({ lost }) => lost ?? []));
  damage.is_worn =
    damage.lost.length === 0 &&
    damage.faults.length > 0 &&
    linesOf(damage.faults).every((line) => OF_ROOM.test(line));
  return damage;
}

/** The faults of a database that are none of its index of words. */
function faultsBeside(whole: Look, { of_index, found }: { of_index: Look[]; found: Found[] }): string[] {
  const theirs = linesOf(of_index.flatMap(({ faults }) => faults));
  if (!whole.is_of_index && theirs.length === 0) return whole.faults;
  const lines = linesOf(whole.faults).filter((line) => !HEADING.test(line));
  const others = found.flatMap((one) => one.lines).filter((line) => !HEADING.test(line));
  // A damaged tree leaves pages that nothing seems to use, and may lead to pages of others, which are well.
  if (whole.is_of_index || whole.has_failed || theirs.some((line) => !OF_CONTENT.test(line)))
    return [...new Set([...others, ...lines.filter((line) => OF_FREE_LIST.test(line))])];
  const known = new Set(theirs);
  return lines.filter((line) => !known.has(line));
}

/** Lines about what is in sound trees. */
const OF_CONTENT = /^(?:wrong # of entries in index |row \d+ missing from index |malformed inverted index )/;

interface Look {
  faults: string[];
  /** Whether SQLite gave up, and why that is known: the index of words. */
  has_failed: boolean;
  is_of_index: boolean;
}

/** What is wrong in the whole database, or in one table with its indexes; values of single rows aside. */
function lookAt(sqlite: Sqlite.Database, table?: string): Look {
  const of = table === undefined ? MAX_FAULTS : quoted(table);
  try {
    const rows = sqlite.pragma(`integrity_check(${of})`) as { integrity_check: string }[];
    const faults = rows
      .map(({ integrity_check }) => integrity_check)
      .filter((words) => words !== "ok" && !OF_ONE_ROW.test(words));
    return { faults, has_failed: false, is_of_index: false };
  } catch (error) {
    return { faults: [messageOf(error)], has_failed: true, is_of_index: isIndexDamage(error) };
  }
}

interface Found {
  lines: string[];
  indexes: string[];
  lost?: string;
}

function examineTable(sqlite: Sqlite.Database, table: string): Found {
  const lines = linesOf(lookAt(sqlite, table).faults);
  if (lines.length === 0) return { lines, indexes: [] };
  const indexes = sqlite.prepare("select name, partial from pragma_index_list(?)").all(table) as {
    name: string;
    partial: number;
  }[];
  const lost = whatIsLost(sqlite, {
    table,
    lines,
    whole: indexes.filter(({ partial }) => partial === 0).map(({ name }) => name),
  });
  if (lost !== undefined) return { lines, indexes: [], lost: `${table}: ${lost}` };
  const is_of_table = lines.every((line) => HEADING.test(line) || ownerOf(sqlite, line) === table);
  return { lines, indexes: is_of_table ? [] : indexes.map(({ name }) => name) };
}

/** Returns what is lost of a table; undefined where every row is there, as far as its whole indexes can tell. */
function whatIsLost(
  sqlite: Sqlite.Database,
  { table, lines, whole }: { table: string; lines: string[]; whole: string[] },
): string | undefined {
  try {
    for (const _row of sqlite.prepare(`select * from ${quoted(table)} not indexed`).iterate());
  } catch (error) {
    return `rows cannot be read (${messageOf(error)})`;
  }
  // An index may be what is damaged, so a row is lost only if each index that can be read leads to it.
  const witnesses = whole
    .map((name) => `select rowid from ${quoted(table)} indexed by ${quoted(name)}`)
    .filter((query) => firstOf(sqlite, `select count(*) + total(rowid) from (${query})`) !== undefined);
  if (witnesses.length > 0) {
    const all = `select rowid from ${quoted(table)} not indexed`;
    const gone = firstOf(sqlite, `select count(*) from (${witnesses.join(" intersect ")} except ${all})`);
    return gone === 0
      ? undefined
      : `its indexes lead to ${gone ?? "an unknown number of"} rows that are not there`;
  }
  return lines.some((line) => ownerOf(sqlite, line) === table && !isOfMoreRoom(line))
    ? "rows may be lost, and no index tells"
    : undefined;
}

/** Whether SQLite only knows of more room in a page than there is. Where it knows of less, the rest may be that of rows. */
function isOfMoreRoom(line: string): boolean {
  const [, is, reported] = FRAGMENTS.exec(line) ?? [];
  return is !== undefined && Number(is) <= Number(reported);
}

/** The table or index that a line is about; undefined where nobody knows. */
function ownerOf(sqlite: Sqlite.Database, line: string): string | undefined {
  const [, index] = /^(?:row|wrong|non-unique|rowid) .* index (\S+)$/.exec(line) ?? [];
  if (index !== undefined) return index;
  const [, root] = /^Tree (\d+) /.exec(line) ?? [];
  const [, , , page] = FRAGMENTS.exec(line) ?? [];
  const [query, at] =
    root === undefined
      ? ["select name from dbstat where pageno = ?", page]
      : ["select name from sqlite_schema where rootpage = ?", root];
  try {
    return sqlite.prepare(query).pluck().get(Number(at)) as string | undefined;
  } catch {
    return undefined;
  }
}

function firstOf(sqlite: Sqlite.Database, query: string): number | undefined {
  try {
    return sqlite.prepare(query).pluck().get() as number;
  } catch {
    return undefined;
  }
}

function tablesOf(sqlite: Sqlite.Database): string[] {
  return sqlite.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[];
}

function linesOf(faults: string[]): string[] {
  return faults.flatMap((fault) => fault.split("\n"));
}

/** The name of a table or index as SQL has it. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
