import type Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";
import { examine } from "./examine.ts";
import { type Look, OF_ONE_ROW } from "./integrity.ts";
import { openSqlite } from "./open-sqlite.ts";
import { orphansIn } from "./snapshot.ts";

declare const self: Worker;

const MAX_FAULTS = 5;

/**
 * Checks the database at the posted path. Answers with a list of faults, or of rows that reference others which do not
 * exist.
 */
self.addEventListener("message", ({ data: { path, look_for } }: MessageEvent<Look>) => {
  try {
    const database = openSqlite(path, { readonly: true });
    if (look_for === "orphans") return postMessage(orphansIn(database));
    if (look_for === "damage") return postMessage(examine(database));
    postMessage(faultsOf(database));
    database.close();
  } catch (error) {
    postMessage({ error: messageOf(error) });
  }
});

function faultsOf(database: Sqlite.Database): string[] {
  const found = quickLook(database);
  if (found.length === 0) return [];
  const { faults, text_index } = examine(database);
  // The quick look names the page where the other one may only say that SQLite has given up.
  const named = text_index ? faults : found;
  if (faults.length > 0) return withNames(database, named.slice(0, MAX_FAULTS).join("\n"));
  return text_index
    ? ["the index of words is damaged, which is made anew"]
    : found.filter((words) => OF_ONE_ROW.test(words));
}

function quickLook(database: Sqlite.Database): string[] {
  try {
    const rows = database.pragma(`quick_check(${MAX_FAULTS})`) as { quick_check: string }[];
    return rows.map(({ quick_check }) => quick_check).filter((words) => words !== "ok");
  } catch (error) {
    return [messageOf(error)];
  }
}

/** Returns one line for each fault, with the names of tables and indexes in place of SQLite's numbers. */
function withNames(database: Sqlite.Database, faults: string): string[] {
  const roots = database.prepare("select rootpage, name from sqlite_schema").raw().all() as [
    number,
    string,
  ][];
  const names = new Map(roots);
  return faults
    .replaceAll(/^Tree (\d+)/gm, (tree, root: string) => `${names.get(Number(root)) ?? tree} (tree ${root})`)
    .split("\n")
    .filter((line) => !line.startsWith("***"));
}
