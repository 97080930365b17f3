import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { temporaryFolder } from "./support.ts";

const DATABASE = "mailwright.db";
/** What `stat` counts blocks in. */
const BLOCK_BYTES = 512;

export interface Share {
  disk: number;
  live: number;
}

/** Bytes of a part of a data folder: what the disk has given for it, and what it would have to at the least. */
export interface Taken {
  database: Share;
  log: Share;
  mail: Share;
  /** What the server keeps free for a full disk, and its small files. */
  rest: Share;
}

/**
 * `live` of the database is its size once it has been written anew, without a free page or a half-empty one; that of mails and
 * files is what rows name, as `mail_files` of `GET /admin/overview` says. Nothing may be written meanwhile.
 */
export function measureFolder(dir: string): Taken {
  const path = join(dir, DATABASE);
  const [database, log, mail] = [path, `${path}-wal`, join(dir, "mail")].map(diskBytes);
  const [of_database = 0, of_log = 0, of_mail = 0] = [database, log, mail];
  return {
    database: { disk: of_database, live: packedBytes(path) },
    log: { disk: of_log, live: 0 },
    mail: { disk: of_mail, live: namedBytes(path) },
    rest: { disk: diskBytes(dir) - of_database - of_log - of_mail, live: 0 },
  };
}

export function sumOf(taken: Taken): Share {
  const parts = Object.values(taken) as Share[];
  return {
    disk: parts.reduce((sum, { disk }) => sum + disk, 0),
    live: parts.reduce((sum, { live }) => sum + live, 0),
  };
}

/** Blocks that a file, or a folder with all that is in it, has of the disk: holes have none. */
function diskBytes(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return 0;
  const inside = found.isDirectory() ? readdirSync(path).map((name) => diskBytes(join(path, name))) : [];
  return inside.reduce((sum, bytes) => sum + bytes, found.blocks * BLOCK_BYTES);
}

function packedBytes(path: string): number {
  const folder = temporaryFolder();
  const copy = join(folder, DATABASE);
  using database = opened(path);
  database.sqlite.prepare("vacuum into ?").run(copy);
  const { size } = statSync(copy);
  rmSync(folder, { recursive: true });
  return size;
}

function namedBytes(path: string): number {
  using database = opened(path);
  const sums = ["raw_mails", "attachments"].map((table) =>
    database.sqlite
      .prepare(`select coalesce(sum(size), 0) from ${table} where segment is not null`)
      .pluck()
      .get(),
  );
  return sums.map(Number).reduce((sum, bytes) => sum + bytes, 0);
}

/** For reading, unless a server is known to have stopped. */
export function opened(
  path: string,
  { writes = false }: { writes?: boolean } = {},
): { sqlite: Sqlite.Database } & Disposable {
  const sqlite = new Sqlite(path, { readonly: !writes });
  return { sqlite, [Symbol.dispose]: () => void sqlite.close() };
}

/**
 * Has the next server on a folder count some days more than the clock of the machine, for its first hour, and delete at
 * once what is due. For a server that has stopped.
 */
export function letDaysPass(dir: string, days: number): void {
  const path = join(dir, DATABASE);
  if (!existsSync(path)) throw new Error(`There is no database in ${dir}`);
  using database = opened(path, { writes: true });
  const time = { calm_ms: Date.now() + days * 86_400_000, wall_ms: Date.now() };
  database.sqlite
    .prepare("update installation set value = ? where name = 'clock'")
    .run(Buffer.from(JSON.stringify(time)));
  database.sqlite.exec(
    "update jobs set run_at = 0 where status = 'pending' and kind in ('purge', 'erase_account')",
  );
}
