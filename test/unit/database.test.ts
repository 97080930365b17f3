import { describe, expect, spyOn, test } from "bun:test";
import { mkdir, mkdtemp, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import type { Config } from "../../src/config/config.ts";
import { openDatabase, tryWriting } from "../../src/db/database.ts";
import { lockDataFolder, lockStores } from "../../src/db/locks.ts";
import { codeOf } from "../../src/errors.ts";

async function folder() {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-database-"));
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

const LOCKS = new URL("../../src/db/locks.ts", import.meta.url).href;

/** Another process that tries to take the lock, says whether it has it, and keeps it until it is killed. */
async function otherProcess(dir: string) {
  const script = `
    import { lockDataFolder } from ${JSON.stringify(LOCKS)};
    const lock = lockDataFolder(${JSON.stringify(dir)});
    console.log(lock ? "locked" : "refused");
    if (lock) setInterval(() => lock, 1_000);
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  return { said: new TextDecoder().decode(value).trim(), child };
}

describe("the lock on a data folder", () => {
  test("belongs to one process, and is gone when that is killed", async () => {
    await using at = await folder();
    const holder = await otherProcess(at.dir);
    expect(holder.said).toBe("locked");
    expect(lockDataFolder(at.dir)).toBeUndefined();
    holder.child.kill("SIGKILL");
    await holder.child.exited;
    using lock = lockDataFolder(at.dir);
    expect(lock).toBeDefined();
    expect((await otherProcess(at.dir)).said).toBe("refused");
  });

  test("is free again when it was given back", async () => {
    await using at = await folder();
    lockDataFolder(at.dir)?.[Symbol.dispose]();
    using lock = lockDataFolder(at.dir);
    expect(lock).toBeDefined();
  });

  test("holds the database too, which may lie in another folder", async () => {
    await using at = await folder();
    const url = `sqlite:${join(at.dir, "shared", "mail.db")}`;
    const of = (dir: string) => ({ data: { dir: join(at.dir, dir) }, database: { url } }) as Config;
    const one = lockStores(of("one"));
    expect(one).toBeDefined();
    expect(lockStores(of("two"))).toBeUndefined();
    // Refused because of the database, it holds no folder either.
    lockDataFolder(join(at.dir, "two"))?.[Symbol.dispose]();
    one?.[Symbol.dispose]();
    using two = lockStores(of("two"));
    expect(two).toBeDefined();
    expect(lockStores(of("one"))).toBeUndefined();
  });

  test("holds the database behind a link to it as well, also before there is one", async () => {
    await using at = await folder();
    const path = join(at.dir, "mail.db");
    await symlink(path, join(at.dir, "link.db"));
    const of = (dir: string, file: string) =>
      ({
        data: { dir: join(at.dir, dir) },
        database: { url: `sqlite:${join(at.dir, file)}` },
      }) as Config;
    using one = lockStores(of("one", "link.db"));
    expect(one).toBeDefined();
    expect(lockStores(of("two", "mail.db"))).toBeUndefined();
  });

  test("that cannot be made is an error of its own, not another process", async () => {
    await using at = await folder();
    await mkdir(join(at.dir, "mailwright.lock"));
    expect(() => lockDataFolder(at.dir)).toThrow(`The data folder ${at.dir} cannot be used`);
  });
});

describe("a database file", () => {
  test("is opened with synced commits and foreign keys, in a folder of its own", async () => {
    await using at = await folder();
    await using database = openDatabase(`sqlite:${join(at.dir, "new", "mail.db")}`);
    const pragma = async (name: string) =>
      Object.values(
        (await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(database.db)).rows[0] ?? {},
      )[0];
    expect(await pragma("journal_mode")).toBe("wal");
    expect(await pragma("synchronous")).toBe(2);
    expect(await pragma("foreign_keys")).toBe(1);
    expect((await stat(join(at.dir, "new"))).mode & 0o777).toBe(0o700);
  });

  test("answers whatever was asked before it closes", async () => {
    await using at = await folder();
    const url = `sqlite:${join(at.dir, "mail.db")}`;
    const database = openDatabase(url);
    await sql`create table notes (text text)`.execute(database.db);
    const asked = Array.from({ length: 300 }, () =>
      database.write((tx) => sql`insert into notes values ('kept')`.execute(tx)),
    );
    await Promise.all([database[Symbol.asyncDispose](), ...asked]);
    await using again = openDatabase(url);
    const { rows } = await sql<{ count: number }>`select count(*) as count from notes`.execute(again.db);
    expect(rows).toEqual([{ count: 300 }]);
  });

  test("waits for the write lock of another program without holding up this one, which reads meanwhile", async () => {
    await using at = await folder();
    const path = join(at.dir, "mail.db");
    await using database = openDatabase(`sqlite:${path}`);
    await database.write((tx) => sql`create table notes (text text)`.execute(tx));
    using other = holdingTheLock(path);
    const asked = ["one", "two"].map((text) =>
      database.write((tx) => sql`insert into notes values (${text})`.execute(tx)),
    );
    // Has the first of them ask for the lock, some times.
    for (let turns = 0; turns < 5; turns += 1) {
      await Bun.sleep(20);
      expect((await sql`select * from notes`.execute(database.db)).rows).toEqual([]);
    }
    other.release();
    await Promise.all(asked);
    expect((await sql`select * from notes`.execute(database.db)).rows).toHaveLength(2);
  });

  test("says that another program has the write lock once it has had it for too long", async () => {
    await using at = await folder();
    const path = join(at.dir, "mail.db");
    const said: string[] = [];
    const say = (_fields: object, words: string): void => void said.push(words);
    await using database = openDatabase(`sqlite:${path}`, { log: { error: say, warn: say, info: say } });
    await database.write(tryWriting);
    using _other = holdingTheLock(path);
    const began_ms = performance.now();
    let waited_ms = 0;
    using _clock = spyOn(performance, "now").mockImplementation(() => began_ms + waited_ms);
    const code = database.write(tryWriting).catch(codeOf);
    await Bun.sleep(100);
    expect(said).toEqual([]);
    waited_ms = 5_000;
    expect(await code).toBe("SQLITE_BUSY");
    expect(said).toEqual([
      expect.stringMatching(/^Another program holds the database; nothing is taken in until it is well/),
    ]);
  });

  test("says in a trial write when it cannot be written", async () => {
    await using at = await folder();
    await using database = openDatabase(`sqlite:${join(at.dir, "mail.db")}`);
    await database.write(tryWriting);
    await sql`pragma query_only = on`.execute(database.db);
    expect(await database.write(tryWriting).catch((error: { code: string }) => error.code)).toBe(
      "SQLITE_READONLY",
    );
    await sql`pragma query_only = off`.execute(database.db);
  });

  test("keeps its log small under load, by checkpoints on another thread", async () => {
    await using at = await folder();
    const path = join(at.dir, "mail.db");
    await expectCheckpoints({ named: path, path });
  });

  test("does so too behind a link, and behind one that leads to nothing yet", async () => {
    await using at = await folder();
    await mkdir(join(at.dir, "disk"));
    const [named, path] = [join(at.dir, "mail.db"), join(at.dir, "disk", "other.db")];
    await symlink(join(at.dir, "halfway.db"), named);
    await symlink("disk/other.db", join(at.dir, "halfway.db"));
    await expectCheckpoints({ named, path });
    await expectCheckpoints({ named, path });
  });

  test("is refused once the link to it leads elsewhere", async () => {
    await using at = await folder();
    const [named, path] = [join(at.dir, "mail.db"), join(at.dir, "other.db")];
    await symlink(path, named);
    await using database = openDatabase(`sqlite:${named}`, QUIET);
    await database.write((tx) => sql`create table notes (text text)`.execute(tx));
    await rm(named);
    const write = () => database.write((tx) => sql`insert into notes values ('x')`.execute(tx));
    await expect(write()).rejects.toThrow(`${named} is not the file any more`);
    await symlink(path, named);
    await write();
  });
});

/** Another connection in the middle of a transaction. */
function holdingTheLock(path: string): { release: () => void } & Disposable {
  const sqlite = new Sqlite(path);
  sqlite.exec("begin immediate");
  return { release: () => void sqlite.exec("commit"), [Symbol.dispose]: () => void sqlite.close() };
}

const QUIET = { log: { error: () => undefined, warn: () => undefined, info: () => undefined } };

/** A log that grows by some megabytes is copied into the database, which is at `path`. */
async function expectCheckpoints({ named, path }: { named: string; path: string }): Promise<void> {
  const problems: object[] = [];
  const note = (fields: object): void => void problems.push(fields);
  const log = { error: note, warn: note, info: note };
  await using database = openDatabase(`sqlite:${named}`, { log });
  await sql`create table if not exists notes (text text)`.execute(database.db);
  const text = "x".repeat(500_000);
  const before = (await stat(path)).size;
  let copied = 0;
  const until = performance.now() + 8_000;
  // 4 MB of log start a checkpoint; it shows when the database file itself has grown.
  while (copied < 4 * 1024 * 1024 && performance.now() < until) {
    await database.write((tx) => sql`insert into notes values (${text})`.execute(tx));
    await Bun.sleep(10);
    copied = (await stat(path)).size - before;
  }
  expect(copied).toBeGreaterThanOrEqual(4 * 1024 * 1024);
  expect(problems).toEqual([]);
}
