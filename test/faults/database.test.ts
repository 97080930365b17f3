import { describe, expect, test } from "bun:test";
import { copyFile, mkdir, readdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { house, type ServerProcess } from "./house.ts";
import { closing, faultsOf, untilIdle } from "./load.ts";
import {
  ask,
  damage,
  type Desk,
  desk,
  expectRefusals,
  logged,
  mail,
  readyz,
  takenBack,
  warnings,
} from "./surfaces.ts";

const LOCKS = ["mailwright.lock", "mailwright.db.lock"];
const GONE = "was deleted, moved or replaced while the server runs";

test("a database file that is moved away takes nothing in, and all is well once it is back", async () => {
  await using at = await house();
  await using server = await at.start();
  const owner = await desk(at, server);
  const first = await mail(server, owner);
  const path = join(at.dir, "mailwright.db");
  await rename(path, `${path}.away`);
  await expectRefusals(server, owner, GONE);
  await expectRefusals(server, owner, GONE);
  expect(await logged(server, GONE)).toHaveLength(1);
  await rename(`${path}.away`, path);
  const second = await mail(server, owner);
  expect([first.reply, second.reply]).toEqual(Array(2).fill(expect.stringMatching(/^250 /)));
  expect((await readyz(server)).status).toBe(200);
  await untilIdle(at);
  await ended(server);
  using database = closing(at.database());
  expect(faultsOf(database.db, new Set([first.id, second.id]))).toEqual([]);
});

test("a data folder that cannot be entered takes nothing in, and all is well once it can be", async () => {
  await using at = await house();
  await using server = await at.start();
  const owner = await desk(at, server);
  const first = await mail(server, owner);
  const closed = "The data folder cannot be entered";
  await rename(at.dir, `${at.dir}.away`);
  // A link to itself is one that nobody can follow (ELOOP): permissions would not keep root out.
  await symlink(at.dir, at.dir);
  await expectRefusals(server, owner, closed);
  await expectRefusals(server, owner, closed);
  await unlink(at.dir);
  await rename(`${at.dir}.away`, at.dir);
  const second = await mail(server, owner);
  expect([first.reply, second.reply]).toEqual(Array(2).fill(expect.stringMatching(/^250 /)));
  expect((await readyz(server)).status).toBe(200);
  expect(await logged(server, closed)).toHaveLength(1);
  await untilIdle(at);
  await ended(server);
  using database = closing(at.database());
  expect(faultsOf(database.db, new Set([first.id, second.id]))).toEqual([]);
});

test("a deleted database file loses nothing: what the server has open is written back when it stops", async () => {
  await using at = await house();
  const taken = new Set<string>();
  {
    await using server = await at.start();
    const owner = await desk(at, server);
    taken.add((await mail(server, owner)).id);
    await untilIdle(at);
    for (const name of ["mailwright.db", "mailwright.db-wal", "mailwright.db-shm"])
      await rm(join(at.dir, name));
    await expectRefusals(server, owner, GONE);
    await ended(server);
    expect(await logged(server, "has been written back")).toHaveLength(1);
    expect((await readdir(at.dir)).filter((name) => name.startsWith("mailwright.db"))).toEqual([
      "mailwright.db",
      "mailwright.db.lock",
    ]);
  }
  await using server = await at.start();
  expect((await readyz(server)).status).toBe(200);
  await ended(server);
  using database = closing(at.database());
  expect(faultsOf(database.db, taken)).toEqual([]);
});

test.each(["mailwright.db-wal", "mailwright.db-shm"])(
  "%s, which belongs to the database, is missed as well when it is deleted under the server",
  async (name) => {
    await using at = await house();
    await using server = await at.start();
    const owner = await desk(at, server);
    await rm(join(at.dir, name));
    await expectRefusals(server, owner, GONE);
  },
);

describe.each(LOCKS)("without %s, which keeps others out,", (name) => {
  test("a server takes nothing in, and all is well once it is back", async () => {
    await using at = await house();
    await using server = await at.start();
    const owner = await desk(at, server);
    const path = join(at.dir, name);
    // What a command line has written is looked for within a second: from then on nobody writes.
    await Bun.sleep(1_500);
    await rename(path, `${path}.away`);
    await logged(server, GONE);
    await expectRefusals(server, owner, GONE);
    expect(await logged(server, GONE)).toHaveLength(1);
    await writeFile(path, "");
    await expectRefusals(server, owner, GONE);
    await rename(`${path}.away`, path);
    expect((await mail(server, owner)).reply).toStartWith("250");
    expect((await readyz(server)).status).toBe(200);
  });

  test("a second server can start, and has the mails to itself", async () => {
    await using at = await house();
    await using first = await at.start();
    const owner = await desk(at, first);
    await at.cli("queue", "hold", "route_message");
    const before = await mail(first, owner);
    await rm(join(at.dir, name));
    // While the other lock is there, nobody else gets in.
    const refused = await at.cli("serve");
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("Another Mailwright is running") });
    for (const lock of LOCKS) await rm(join(at.dir, lock), { force: true });
    await using second = await at.start();
    const large = " word".repeat(20_000);
    expect((await mail(first, owner, large)).reply).toStartWith("451 4.3.0 ");
    const after = await mail(second, owner, large);
    expect([before.reply, after.reply]).toEqual(Array(2).fill(expect.stringMatching(/^250 /)));
    await at.cli("queue", "release");
    await untilIdle(at);
    await ended(first);
    await ended(second);
    using database = closing(at.database());
    expect(faultsOf(database.db, new Set([before.id, after.id]))).toEqual([]);
  });
});

test("no new database is begun beside what belongs to a lost one", async () => {
  await using at = await house();
  {
    await using server = await at.start();
    await mail(server, await desk(at, server));
    server.kill("SIGKILL");
    await server.exited;
  }
  const path = join(at.dir, "mailwright.db");
  await rename(path, `${path}.away`);
  const refused = await at.cli("serve");
  expect([refused.code, refused.err]).toEqual([
    1,
    `The database ${path} is gone, but ${path}-wal, which belongs to it, is there. Put it back, or restore a backup: ` +
      "mailwright restore FILE. To begin anew, move the data folder away.\n",
  ]);
  expect((await at.cli("migrate")).err).toBe(refused.err);
  await writeFile(path, "");
  for (const words of [["serve"], ["migrate"], ["migrate", "status"], ["doctor"], ["backup", `${path}.zip`]])
    expect((await at.cli(...words)).err).toStartWith(`The database ${path} is gone, but `);
  await rename(`${path}-wal`, `${path}-wal.away`);
  // What a server writes a deleted one back to, should it be killed before it has its name again.
  await writeFile(`${path}.back`, "a database");
  expect((await at.cli("serve")).err).toStartWith(
    `The database ${path} is gone, but ${path}.back, which belongs`,
  );
  await rm(`${path}.back`);
  const mails = join(at.dir, "mail", "00000001.seg");
  await writeFile(mails, "a mail");
  expect((await at.cli("serve")).err).toStartWith(
    `The database ${path} is gone, but ${mails}, which belongs`,
  );
  await rename(`${path}-wal.away`, `${path}-wal`);
  await rename(`${path}.away`, path);
  await using server = await at.start();
  expect((await readyz(server)).status).toBe(200);
});

test("no new database is begun in a folder where one was, though only small mails came and it was stopped", async () => {
  await using at = await house();
  {
    await using server = await at.start();
    expect((await mail(server, await desk(at, server))).reply).toStartWith("250");
    await untilIdle(at);
    await ended(server);
  }
  const path = join(at.dir, "mailwright.db");
  const kept = join(at.dir, "mail", "position.json");
  await rename(path, `${path}.away`);
  expect(await at.cli("serve")).toMatchObject({
    code: 1,
    err: expect.stringContaining(`The database ${path} is gone, but ${kept}, which belongs to it, is there.`),
  });
  // As an earlier version leaves it.
  await rename(kept, `${at.dir}/../kept`);
  expect((await at.cli("serve")).err).toContain(
    `The database ${path} is gone, but ${at.dir}/backup.lock, which`,
  );
  await rename(`${path}.away`, path);
  await using server = await at.start();
  expect((await readyz(server)).status).toBe(200);
});

test("keys, certificates and an empty folder of mails that were laid before a first start keep nobody from it", async () => {
  await using at = await house();
  await writeFile(join(at.dir, "master.key"), Buffer.alloc(32, 9).toString("base64"), { mode: 0o600 });
  await mkdir(join(at.dir, "mail"));
  await using server = await at.start();
  expect((await mail(server, await desk(at, server))).reply).toStartWith("250");
});

test("a database that is older than the files of mails loses nothing of what the newer one names, and all goes on with that", async () => {
  await using at = await house();
  const path = join(at.dir, "mailwright.db");
  const kept = join(at.dir, "mail", "position.json");
  const large = " word".repeat(20_000);
  const taken = new Set<string>();
  const take = async (server: ServerProcess, owner: Desk): Promise<void> => {
    const { id, reply } = await mail(server, owner, large);
    expect(reply).toStartWith("250");
    taken.add(id);
  };
  let owner: Desk;
  {
    await using server = await at.start();
    owner = await desk(at, server);
    await take(server, owner);
    await untilIdle(at);
    await ended(server);
  }
  await copyFile(path, `${path}.yesterday`);
  {
    await using server = await at.start();
    await at.cli("queue", "hold", "route_message");
    for (let count = 0; count < 3; count += 1) await take(server, owner);
    await ended(server);
  }
  await rename(path, `${path}.today`);
  await rename(`${path}.yesterday`, path);
  // What it takes itself is not lost to the other one either.
  for (let starts = 0; starts < 2; starts += 1) {
    await using server = await at.start();
    await logged(server, "were in use with a newer database than this one");
    expect((await warnings(server))["older_database"]).toContain(`if this one is to stay, delete ${kept}`);
    expect((await at.cli("doctor")).out).toContain("The database is older than the files of mails.");
    expect((await mail(server, owner, large)).reply).toStartWith("250");
    await untilIdle(at);
    await ended(server);
  }
  await rename(path, `${path}.yesterday`);
  await rename(`${path}.today`, path);
  {
    await using server = await at.start();
    // The other one has taken mails since, of which this one knows nothing.
    expect(await warnings(server)).toHaveProperty("older_database");
    await at.cli("queue", "release");
    await rm(kept);
    await takenBack(server, "older_database");
    await untilIdle(at);
    await ended(server);
  }
  await using server = await at.start();
  expect(await warnings(server)).not.toHaveProperty("older_database");
  await ended(server);
  using database = closing(at.database());
  expect(faultsOf(database.db, taken)).toEqual([]);
  expect(database.db.prepare("select count(*) from raw_mails where lost_at is not null").pluck().get()).toBe(
    0,
  );
}, 60_000);

test("a damaged page is named, nothing is written any more, and a restored backup is well again", async () => {
  await using at = await house();
  await using server = await at.start();
  const owner = await desk(at, server);
  for (let count = 0; count < 5; count += 1) expect((await mail(server, owner)).reply).toStartWith("250");
  await untilIdle(at);
  const backup = join(at.dir, "..", "backup.zip");
  expect((await at.cli("backup", backup)).code).toBe(0);
  damage(at, "messages");
  await expectRefusals(server, owner, "The database may be damaged");
  await logged(server, "The database is damaged;");
  await expectRefusals(server, owner, "The database is damaged");
  const { body } = await ask(server, owner, "/v1/messages", { instruction: "x" });
  expect(body.fix).toContain("mailwright restore FILE");
  expect(await logged(server, "The database is damaged;")).toHaveLength(1);
  await logged(server, "messages (tree ");
  expect((await at.cli("doctor")).out).toMatch(
    /fail {2}database: The database is damaged: .*messages \(tree /,
  );
  // What lies elsewhere is still read.
  expect((await ask(server, owner, "/auth/me")).status).toBe(200);
  await ended(server);
  expect(await at.cli("restore", backup, "--yes")).toMatchObject({ code: 0 });
  await using restored = await at.start();
  expect((await mail(restored, owner)).reply).toStartWith("250");
  expect((await readyz(restored)).status).toBe(200);
}, 30_000);

test("damage that a start meets is said in words, and so it is to every command", async () => {
  await using at = await house();
  {
    await using server = await at.start();
    await desk(at, server);
    await ended(server);
  }
  damage(at, "jobs");
  for (const words of [["serve"], ["queue", "list"]]) {
    const { code, err } = await at.cli(...words);
    expect([code, err]).toEqual([1, expect.stringContaining("The database is damaged (")]);
    expect(err).toContain("mailwright restore FILE");
    expect(err).not.toContain("    at ");
  }
});

async function ended(server: ServerProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}
