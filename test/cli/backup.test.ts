import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  stat,
  symlink,
  utimes,
  writeFile,
  rm,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { account, type House, house } from "../faults/house.ts";
import { closing } from "../faults/load.ts";
import { builtBinary } from "../support/binary.ts";
import { entriesOf, withManifest } from "../support/backups.ts";
import { zipOf } from "../support/files.ts";
import { until } from "../support/until.ts";

let at: House;
let away: string;
beforeAll(async () => {
  at = await house();
  away = join(at.dir, "..", "away");
  await mkdir(away);
  await account(at, "ann@client.example");
});
afterAll(() => at[Symbol.asyncDispose]());

test("says what a backup holds, that it is secret, and leaves nothing else behind", async () => {
  const own = join(away, "own");
  await mkdir(own);
  const path = join(own, "one.zip");
  const { code, out, err } = await at.cli("backup", path);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(
    /^Backup written to .*one\.zip \([1-9]\d* KB\)\.\nIn it: 1 account, 0 inboxes, 0 messages; /,
  );
  expect(out).toContain("the keys to every stored credential: keep it where nobody else can read it.");
  expect(out).toContain("Not in it: the configuration file");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(own)).toEqual(["one.zip"]);
});

test("tells a machine its manifest, and what it tells is in the archive", async () => {
  const path = join(away, "two.zip");
  const { out } = await at.cli("backup", path, "--json");
  const { file, bytes, ...manifest } = JSON.parse(out) as Record<string, unknown>;
  expect({ file, bytes }).toEqual({ file: path, bytes: (await stat(path)).size });
  expect(manifest).toMatchObject({ format: 1, hostname: "mx.mw.test", mail: true, counts: { accounts: 1 } });
  const entries = await entriesOf(path);
  expect(JSON.parse(String(entries.at(-1)?.content))).toEqual(manifest);
});

test("writes to the standard output, and its words elsewhere", async () => {
  const { out, err } = await at.cli("backup", "-");
  expect(err).toStartWith("Backup written.\n");
  expect(out).toStartWith("PK");
});

test("what was written to the standard output is restored from the standard input", async () => {
  await using own = await house();
  await account(own, "ann@client.example");
  const path = join(own.dir, "../piped.zip");
  await own.cli("backup", path);
  const left = async () => (await readdir(tmpdir())).filter((name) => name.startsWith("mailwright-restore-"));
  const before = await left();
  const restore = async (...words: string[]) => {
    const command = [
      await builtBinary(),
      "restore",
      "-",
      ...words,
      "--config",
      join(own.dir, "../config.toml"),
    ];
    const child = Bun.spawn(command, { stdin: Bun.file(path), stdout: "pipe", stderr: "pipe" });
    const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, out: said[0], err: said[1] };
  };
  expect(await restore()).toMatchObject({ code: 1, err: expect.stringContaining("Say --yes") });
  expect(await restore("--yes")).toMatchObject({ code: 0, out: expect.stringContaining("1 account") });
  expect(await left()).toEqual(before);
});

test("writes all of it to a program that reads slowly, and stops in words where that has ended", async () => {
  const written = `"${process.execPath}" "${join(import.meta.dir, "fixtures/large-output.ts")}"`;
  const through = async (reader: string) => {
    const shell = Bun.spawn(["bash", "-c", `set -o pipefail; ${written} | ${reader}`], { stderr: "pipe" });
    return { out: (await new Response(shell.stdout).text()).trim(), code: await shell.exited };
  };
  expect(await through("(sleep 0.5; wc -c)")).toEqual({ out: "24000000", code: 0 });
  expect((await through("head -c 10")).code).not.toBe(0);
});

test.skipIf(process.getuid?.() !== 0)(
  "root makes nothing in the folder of another user, which that user could not use",
  async () => {
    const path = join(away, "roots.zip");
    await at.cli("backup", path);
    await chown(at.dir, 65_534, 65_534);
    const before = await readdir(at.dir);
    const tried = [
      ["backup", join(away, "others.zip")],
      ["restore", path, "--yes"],
      ["migrate"],
      ["user", "list"],
    ];
    for (const words of tried)
      expect(await at.cli(...words)).toMatchObject({
        code: 1,
        err: expect.stringMatching(
          /belongs to another user than root\. Run this as that user, with: sudo -u /,
        ),
      });
    expect(await readdir(at.dir)).toEqual(before);
    await chown(at.dir, 0, 0);
  },
);

test("replaces no file unasked, and names the mend for every place that will not do", async () => {
  const path = join(away, "three.zip");
  await writeFile(path, "precious");
  expect(await at.cli("backup", path)).toMatchObject({
    code: 1,
    err: expect.stringContaining("or replace it with --overwrite."),
  });
  expect(await readFile(path, "utf8")).toBe("precious");
  await writeFile(path, "");
  expect(await at.cli("backup", path, "--overwrite")).toMatchObject({ code: 0 });
  expect(await at.cli("backup", path, "--overwrite")).toMatchObject({ code: 0 });
  expect(await at.cli("backup", away)).toMatchObject({
    code: 1,
    err: expect.stringContaining("is a folder. Name a file in it"),
  });
  const nowhere = await at.cli("backup", join(away, "not-mounted", "four.zip"));
  expect(nowhere).toMatchObject({
    code: 1,
    err: expect.stringContaining("Name a folder that this user may write to"),
  });
  expect(await readdir(away)).not.toContain("not-mounted");
});

test("replaces nothing but archives: neither the database nor a device", async () => {
  const database = join(at.dir, "mailwright.db");
  const device = join(away, "null");
  await symlink("/dev/null", device);
  for (const path of [database, device])
    expect(await at.cli("backup", path, "--overwrite")).toMatchObject({
      code: 1,
      err: expect.stringContaining("is no backup, so it is not replaced"),
    });
  expect((await readFile(database)).subarray(0, 15).toString()).toBe("SQLite format 3");
  expect(await readlink(device)).toBe("/dev/null");
});

test.each<[string, (database: string, bytes: Buffer) => void]>([
  ["is damaged", (_database, bytes) => void bytes.fill(0xff, 8_192, 60_000)],
  ["has a page that has lost rows", loseRows],
])("of a database that %s there is no backup, and the older one stays", async (what, damage) => {
  await using broken = await house();
  for (const name of ["bob", "cleo", "dan"]) await account(broken, `${name}@client.example`);
  const path = join(away, `${what}.zip`);
  expect((await broken.cli("backup", path)).code).toBe(0);
  const good = await readFile(path);
  const database = join(broken.dir, "mailwright.db");
  const bytes = await readFile(database);
  damage(database, bytes);
  await writeFile(database, bytes);
  const { code, err } = await broken.cli("backup", path, "--overwrite");
  expect({ code, err }).toMatchObject({
    code: 1,
    err: expect.stringContaining("The database is damaged, so no backup was made"),
  });
  expect(await readFile(path)).toEqual(good);
  expect((await readdir(away)).filter((name) => name.startsWith("."))).toEqual([]);
});

/** Has the page of all accounts say that it has one row (SQLite's file format, section 1.6). */
function loseRows(database: string, bytes: Buffer): void {
  const db = new Sqlite(database, { readonly: true });
  const pages = db.prepare("select pageno from dbstat where name = 'users' and pagetype = 'leaf'").pluck();
  const size = db.pragma("page_size", { simple: true }) as number;
  bytes.writeUInt16BE(1, ((pages.get() as number) - 1) * size + 3);
  db.close();
}

test("restores only what was confirmed, and says where the former content is and what to look at", async () => {
  const path = join(away, "six.zip");
  await at.cli("backup", path);
  await account(at, "eve@client.example");
  const refused = await at.cli("restore", path);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("Say --yes if that is what you want.");
  expect(refused.err).toContain("by the backup of mx.mw.test from 20");
  const { code, out } = await at.cli("restore", path, "--yes", "--hold-queue");
  expect(code).toBe(0);
  expect(out).toContain("restore-points/20");
  expect(out).toContain("Everybody has to sign in again.");
  expect(out).toContain("`mailwright queue release`");
  const listed = JSON.parse((await at.cli("user", "list", "--json")).out) as { email: string }[];
  expect(listed.map(({ email }) => email)).toEqual(["ann@client.example"]);
  const [point = ""] = await readdir(join(at.dir, "restore-points"));
  using former = closing(new Sqlite(join(at.dir, "restore-points", point, "mailwright.db")));
  expect(former.db.prepare("select count(*) from users").pluck().get()).toBe(2);
});

test("restores nothing beside a running server, or from what is no backup", async () => {
  await using server = await at.start();
  expect(server.pid).toBeGreaterThan(0);
  const path = join(away, "one.zip");
  expect(await at.cli("restore", path, "--yes")).toMatchObject({
    code: 1,
    err: expect.stringContaining("Stop it first."),
  });
  server.kill("SIGTERM");
  await server.exited;
  await writeFile(join(away, "text.zip"), "Dear Ann");
  expect(await at.cli("restore", join(away, "text.zip"), "--yes")).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      "This is no usable backup of Mailwright: it is no zip archive, or was cut off",
    ),
  });
});

test("says nothing of what is in an archive in a way that a terminal would obey", async () => {
  const path = join(away, "hostile.zip");
  await at.cli("backup", path);
  const entries = withManifest(await entriesOf(path), { migrations: ["\u001b]0;owned\u0007\n\u202e"] });
  await writeFile(path, zipOf(entries));
  const { code, err } = await at.cli("restore", path, "--yes");
  expect(code).toBe(1);
  expect(err).toContain("This backup is of a newer Mailwright (it has the migration ?]0;owned???).");
});

test("a folder without a Mailwright has nothing to back up", async () => {
  await using empty = await house();
  await rm(join(empty.dir, "mailwright.db"));
  const { code, err } = await empty.cli("backup", join(away, "seven.zip"));
  expect({ code, err }).toMatchObject({
    code: 1,
    err: expect.stringContaining("There is no Mailwright in the data folder"),
  });
});

test("whoever has the folder for itself ends a restore that was cut off; who only looks waits for that", async () => {
  await using half = await house();
  await account(half, "bob@client.example");
  const work = join(half.dir, ".mailwright-restore");
  await mkdir(join(work, "fresh"), { recursive: true });
  await half.cli("backup", join(away, "eight.zip"));
  const database = (await entriesOf(join(away, "eight.zip")))[0]?.content as Buffer;
  await writeFile(join(work, "fresh", "mailwright.db"), database);
  const plan = {
    out: [{ from: "mailwright.db", to: "restore-points/x/mailwright.db" }],
    remove: ["mailwright.db-wal", "mailwright.db-shm"],
    in: [{ from: ".mailwright-restore/fresh/mailwright.db", to: "mailwright.db" }],
  };
  await writeFile(join(work, "plan.json"), JSON.stringify(plan));
  expect(await half.cli("migrate", "status")).toMatchObject({
    code: 1,
    err: expect.stringContaining("is just being restored"),
  });
  const beside = await half.cli("backup", join(away, "ten.zip"));
  expect({ ...beside }).toMatchObject({ code: 1, err: expect.stringContaining("is just being restored") });
  await mkdir(join(half.dir, "restore-points", "x"), { recursive: true });
  await rename(join(half.dir, "mailwright.db"), join(half.dir, "restore-points", "x", "mailwright.db"));
  expect(await half.cli("user", "list")).toMatchObject({
    code: 0,
    out: "bob@client.example  team  administrator\n",
  });
  await using server = await half.start();
  expect((await fetch(`${server.http}/readyz`)).status).toBe(200);
  expect(await readdir(join(half.dir, "restore-points", "x"))).toEqual(["mailwright.db"]);
  expect(await readdir(half.dir)).not.toContain(".mailwright-restore");
});

test("one that is stopped leaves no copy of the database behind, and what one left that was killed goes with the next", async () => {
  await using large = await house();
  await account(large, "cid@client.example");
  const db = large.database();
  const fill = db.prepare(
    "insert into raw_mails (id, size, created, bytes) values (?, 1, 0, randomblob(1000000))",
  );
  for (let mail = 0; mail < 60; mail += 1) fill.run(String(mail));
  db.close();
  const folder = join(away, "stopped");
  await mkdir(folder);
  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    const child = large.run("backup", join(folder, "large.zip"));
    const isPacking = async () =>
      (await readdir(folder, { recursive: true })).some((name) => name.endsWith(".zip"));
    await until(async () => await isPacking());
    child.kill(signal);
    return { code: await child.exited, err: await new Response(child.stderr).text() };
  };
  expect(await end("SIGTERM")).toEqual({ code: 1, err: "Stopped: no backup was made.\n" });
  expect(await readdir(folder)).toEqual([]);
  await end("SIGKILL");
  expect(await readdir(folder)).toEqual([expect.stringMatching(/^\.mailwright-draft-/)]);
  await large.cli("backup", join(folder, "large.zip"));
  expect(await readdir(folder)).toEqual(["large.zip"]);
}, 30_000);

test("takes away the draft of a backup that was killed long ago", async () => {
  const folder = join(away, "drafts");
  await mkdir(join(folder, ".mailwright-draft-old"), { recursive: true });
  await writeFile(join(folder, ".mailwright-draft-old", "snapshot.db"), "x");
  const long_ago = new Date(Date.now() - 2 * 86_400_000);
  await utimes(join(folder, ".mailwright-draft-old"), long_ago, long_ago);
  await at.cli("backup", join(folder, "nine.zip"));
  expect(await readdir(folder)).toEqual(["nine.zip"]);
});

test.each([
  ["gone", (key: string) => rename(key, `${key}.away`)],
  ["another one", (key: string) => writeFile(key, `${"A".repeat(43)}=\n`)],
])("makes none while the master key in the data folder is %s: nobody could open it", async (what, lose) => {
  const key = join(at.dir, "master.key");
  const kept = await readFile(key);
  const path = join(away, `${what}.zip`);
  await lose(key);
  const { code, out, err } = await at.cli("backup", path);
  await writeFile(key, kept, { mode: 0o600 });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("master.key in the data folder is gone, or is not the key of this database");
  expect(await readdir(away)).not.toContain(`${what}.zip`);
  expect((await at.cli("backup", path)).code).toBe(0);
});
