import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import Sqlite from "better-sqlite3";
import { restoreBackup } from "../../src/backup/restore.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { lockDataFolder, lockMailBytes } from "../../src/db/locks.ts";
import { memoryDisk, whyNoMounts } from "../faults/disks.ts";
import {
  changedDatabase,
  backupLab,
  contentOf,
  entriesOf,
  filesOf,
  type Lab,
  NOW,
  restored,
  withManifest,
} from "../support/backups.ts";
import { zipOf } from "../support/files.ts";

const reason = await whyNoMounts("tmpfs");
if (reason !== undefined) console.log(`A second disk is not tried: ${reason}`);

const ADA = { accounts: ["ada@example.com"], mails: [70_000] };
const BOB = { accounts: ["bob@example.com"], mails: [70_000] };

let lab: Lab;
beforeAll(async () => {
  lab = await backupLab();
});
afterAll(() => lab[Symbol.asyncDispose]());

describe("a restore", () => {
  test("makes of an empty folder what was backed up: accounts, mails beside the database, keys", async () => {
    const config = lab.config("empty");
    expect(await restored(config, lab.archive)).toMatchObject({
      restore_point: null,
      manifest: { counts: { accounts: 1 } },
    });
    expect(await contentOf(config)).toEqual(ADA);
    for (const name of ["master.key", "smtp-certificate.json"])
      expect(await readFile(join(config.data.dir, name))).toEqual(
        await readFile(join(lab.source.data.dir, name)),
      );
    expect(existsSync(join(config.data.dir, ".mailwright-restore"))).toBe(false);
  });

  test("keeps what was there, whole, where the next one does not touch it", async () => {
    const config = await lab.other("replaced");
    const before = await filesOf(config.data.dir);
    const first = await restored(config, lab.archive);
    expect(await contentOf(config)).toEqual(ADA);
    expect(await restored(config, lab.archive)).not.toMatchObject(first as object);
    const point = (first as { restore_point: string }).restore_point;
    expect(await filesOf(point)).toEqual(before);
    expect(
      await contentOf({
        ...config,
        data: { dir: point },
        database: { url: `sqlite:${point}/mailwright.db` },
      }),
    ).toEqual(BOB);
  });

  test("does so in a data folder that a link leads to as well", async () => {
    const other = await lab.other("linked-to");
    const { data } = other;
    const link = join(lab.base, "link");
    await symlink(data.dir, link);
    const url = `sqlite:${link}/mailwright.db`;
    const config = { ...other, data: { ...data, dir: link }, database: { url } };
    const before = await filesOf(data.dir);
    const { restore_point } = (await restored(config, lab.archive)) as { restore_point: string };
    expect(await contentOf(config)).toEqual(ADA);
    expect(await filesOf(restore_point)).toEqual(before);
  });

  test("asks before it replaces anything, and a no changes nothing", async () => {
    const config = await lab.other("asked");
    const before = await filesOf(config.data.dir);
    const asked: unknown[] = [];
    const confirm = async (...words: unknown[]): Promise<boolean> => {
      asked.push(words);
      return false;
    };
    expect(await restoreBackup(config, lab.archive, { now: NOW, hold: false, confirm })).toBeNull();
    expect(asked).toMatchObject([[{ hostname: "mx.mw.test" }, true]]);
    expect(await filesOf(config.data.dir)).toEqual(before);
  });

  test("is refused while a server runs on the folder", async () => {
    const config = await lab.other("running");
    using lock = lockDataFolder(config.data.dir);
    expect(lock).toBeDefined();
    expect(await restored(config, lab.archive)).toBe(
      `A server is running on the data folder ${config.data.dir}.`,
    );
  });

  test("finds a database that is elsewhere, and keeps the former one beside it", async () => {
    const path = join(lab.base, "elsewhere", "mail.db");
    const config = lab.config("apart", { database: { url: `sqlite:${path}` } });
    await restored(config, lab.archive);
    expect(await contentOf(config)).toEqual(ADA);
    await writeFile(`${path}-wal`, "left over");
    await restored(config, lab.archive);
    expect(await contentOf(config)).toEqual(ADA);
    expect(Object.keys(await filesOf(dirname(path)))).toEqual([
      "mail.db",
      "mail.db-wal.before-20260115T120000Z",
      "mail.db.before-20260115T120000Z",
    ]);
  });

  test.skipIf(reason !== undefined)(
    "is refused, and changes nothing, where the former content would go to another disk",
    async () => {
      await using disk = await memoryDisk(1);
      const config = await lab.other("divided");
      await symlink(disk.path, join(config.data.dir, "restore-points"));
      expect(await restored(config, lab.archive)).toContain("restore-points is on another disk");
      expect(await contentOf(config)).toEqual(BOB);
      expect(await readdir(disk.path)).toEqual([]);
    },
  );

  test("signs everybody out, lets interrupted work begin anew, and holds the queue if told so", async () => {
    const config = lab.config("held");
    const entries = await entriesOf(lab.archive);
    const database = entries[0]?.content as Buffer;
    const changed = await changedDatabase(
      lab.base,
      database,
      `insert into sessions (id, user_id, created, expires, client, user_agent) select 's', id, 0, 9e9, '', '' from users;
       insert into jobs (id, kind, payload, status, run_at, attempts, failures, lease_until, created)
       values ('j', 'send_mail', '{}', 'running', 0, 1, 0, 9e9, 0), ('c', 'mail_code', '{}', 'pending', 0, 0, 0, null, 0)`,
    );
    const archive = await packed(
      "held.zip",
      withManifest([{ name: "mailwright.db", content: changed }, ...entries.slice(1)]),
    );
    await restored(config, archive, true);
    const db = new Sqlite(join(config.data.dir, "mailwright.db"));
    expect(db.prepare("select count(*) from sessions").pluck().get()).toBe(0);
    expect(db.prepare("select id from jobs").pluck().all()).toEqual(["j"]);
    expect(db.prepare("select kind from held_kinds order by kind").pluck().all()).toEqual([
      "deliver_webhooks",
      "fan_out_event",
      "replay_message",
      "route_message",
      "run_schedule",
      "send_mail",
    ]);
    db.close();
    expect(existsSync(join(config.data.dir, "mailwright.db-wal"))).toBe(false);
  });

  test("of a backup from before an upgrade leaves the mails where they are", async () => {
    const config = await lab.other("downgraded");
    const archive = join(lab.base, "before-0099-x.zip");
    await backupToFile({ ...sourceOf(config, NOW), mail: false }, archive, new AbortController().signal);
    expect((await entriesOf(archive)).map(({ name }) => name)).toEqual([
      "mailwright.db",
      "master.key",
      "smtp-certificate.json",
      "manifest.json",
    ]);
    await restored(config, archive);
    expect(await contentOf(config)).toEqual(BOB);
    expect(await restored(lab.config("other-machine"), archive)).toBe(
      "This backup was made before an upgrade and is without mail/00000001.seg.",
    );
    // The server deletes a file once all in it has been deleted, and never the newest.
    const mail = join(config.data.dir, "mail");
    await rename(join(mail, "00000001.seg"), join(mail, "00000002.seg"));
    expect(await restored(config, archive)).toMatchObject({ manifest: { mail: false } });
  });

  test("waits for no backup that is being made of the folder", async () => {
    const config = await lab.other("busy");
    using _backup = lockMailBytes(config.data.dir);
    expect(await restored(config, lab.archive)).toBe(
      `A backup of the data folder ${config.data.dir} is being made.`,
    );
  });
});

describe("a master key that is configured", () => {
  const master_key = Buffer.alloc(32, 9).toString("base64");
  const wrong = Buffer.alloc(32, 8).toString("base64");

  test("is not in the archive, and has to be the same one when it is restored", async () => {
    const source = lab.config("configured", { security: { master_key } });
    await contentOf(source);
    const archive = join(lab.base, "configured.zip");
    await backupToFile(sourceOf(source, NOW), archive, new AbortController().signal);
    expect((await entriesOf(archive)).map(({ name }) => name)).not.toContain("master.key");
    const without = lab.config("without");
    expect(await restored(without, archive)).toBe(
      "The master key is not in this backup: its server had it in security.master_key.",
    );
    const other = lab.config("without", { security: { master_key: wrong } });
    expect(await restored(other, archive)).toBe(
      "security.master_key is not the key that this backup was made with.",
    );
    expect(await filesOf(without.data.dir)).toEqual({});
    expect(await restored(lab.config("without", { security: { master_key } }), archive)).toMatchObject({
      manifest: { master_key: "configured" },
    });
  });

  test("that is not the one in the archive is refused", async () => {
    const config = lab.config("overridden", { security: { master_key } });
    expect(await restored(config, lab.archive)).toBe(
      "security.master_key is not the key that this backup was made with.",
    );
  });
});

describe("an archive is refused in words, and nothing is changed, when it", () => {
  type Entries = { name: string; content: Buffer }[];
  const without = (entries: Entries, name: string): Entries => entries.filter((one) => one.name !== name);
  const spoiled = (entries: Entries, name: string): Entries =>
    entries.map((one) => (one.name === name ? { name, content: flipped(one.content) } : one));
  const repacked = (change: (entries: Entries) => Entries | Promise<Entries>) => async (entries: Entries) =>
    zipOf(await change(entries));
  const SEGMENT = "mail/00000001.seg";

  const cases: [string, (entries: Entries, archive: Buffer) => Uint8Array | Promise<Uint8Array>, RegExp][] = [
    ["is empty", () => Buffer.alloc(0), /it is no zip archive, or was cut off/],
    [
      "is something else",
      () => Buffer.from("Dear Ada, ".repeat(1_000)),
      /it is no zip archive, or was cut off/,
    ],
    [
      "was cut off",
      (_, archive) => archive.subarray(0, archive.length - 200),
      /it is no zip archive, or was cut off/,
    ],
    [
      "has lost its middle",
      (_, archive) => Buffer.concat([archive.subarray(0, 5_000), archive.subarray(9_000)]),
      /usable backup/,
    ],
    ["has no manifest", repacked((entries) => without(entries, "manifest.json")), /it has no manifest/],
    [
      "has a manifest of somebody else",
      repacked((entries) => [
        ...without(entries, "manifest.json"),
        { name: "manifest.json", content: Buffer.from("[1]") },
      ]),
      /its manifest is not one of ours/,
    ],
    [
      "has a manifest that is no JSON",
      repacked((entries) => [
        ...without(entries, "manifest.json"),
        { name: "manifest.json", content: Buffer.from("{") },
      ]),
      /its manifest is not one of ours/,
    ],
    [
      "is of a later format",
      repacked((entries) => withManifest(entries, { format: 2 })),
      /its manifest is not one of ours/,
    ],
    [
      "has no database",
      repacked((entries) => withManifest(without(entries, "mailwright.db"))),
      /it has no database/,
    ],
    [
      "lacks a file that its manifest names",
      repacked((entries) => without(entries, "master.key")),
      /master\.key is missing/,
    ],
    [
      "has a file that its manifest does not know",
      repacked((entries) => [...entries, { name: "tls/other.pem", content: Buffer.from("x") }]),
      /does not know tls\/other\.pem/,
    ],
    [
      "has a file twice",
      repacked((entries) => [...entries, ...entries.slice(0, 1)]),
      /mailwright\.db is in it twice/,
    ],
    [
      "would write beside the data folder",
      repacked((entries) => withManifest([...entries, { name: "../evil", content: Buffer.from("x") }])),
      /invalid relative path/,
    ],
    [
      "would write to the root",
      repacked((entries) => withManifest([...entries, { name: "/etc/evil", content: Buffer.from("x") }])),
      /absolute path/,
    ],
    [
      "would write a file of no backup",
      repacked((entries) => withManifest([...entries, { name: "config.toml", content: Buffer.from("x") }])),
      /"config\.toml" has no place in one/,
    ],
    [
      "hides a way out in a name of ours",
      repacked((entries) =>
        withManifest([...entries, { name: "tls/..%2f/x.pem", content: Buffer.from("x") }]),
      ),
      /has no place in one/,
    ],
    [
      "has other bytes in the database",
      repacked((entries) => spoiled(entries, "mailwright.db")),
      /mailwright\.db is damaged \(its checksum is another\)/,
    ],
    [
      "has other bytes in a mail",
      repacked((entries) => spoiled(entries, SEGMENT)),
      /mail\/00000001\.seg is damaged/,
    ],
    [
      "lacks the mails that its database names",
      repacked((entries) => withManifest(without(entries, SEGMENT))),
      /mails in mail\/00000001\.seg are missing/,
    ],
    [
      "lacks its master key",
      repacked((entries) => withManifest(without(entries, "master.key"))),
      /The master key is not in this backup/,
    ],
    [
      "has another master key",
      repacked((entries) =>
        withManifest([
          ...without(entries, "master.key"),
          { name: "master.key", content: Buffer.from(Buffer.alloc(32, 5).toString("base64")) },
        ]),
      ),
      /not the one its database was made with/,
    ],
    [
      "has a database that is none",
      repacked((entries) =>
        withManifest([
          ...without(entries, "mailwright.db"),
          { name: "mailwright.db", content: Buffer.from("x".repeat(10_000)) },
        ]),
      ),
      /its database is damaged/,
    ],
    [
      "has a database of another program",
      repacked(async (entries) => {
        const content = await changedDatabase(lab.base, Buffer.alloc(0), "create table recipes (name text)");
        return withManifest([{ name: "mailwright.db", content }, ...entries.slice(1)]);
      }),
      /none of Mailwright/,
    ],
    [
      "has a damaged database",
      repacked((entries) =>
        withManifest(
          entries.map((one) =>
            one.name === "mailwright.db"
              ? {
                  ...one,
                  content: Buffer.concat([
                    one.content.subarray(0, 8_192),
                    Buffer.alloc(60_000, 1),
                    one.content.subarray(68_192),
                  ]),
                }
              : one,
          ),
        ),
      ),
      /damaged/,
    ],
    [
      "is of a newer version, says its manifest",
      repacked((entries) => withManifest(entries, { migrations: ["9999-of-tomorrow"] })),
      /newer Mailwright \(it has the migration 9999-of-tomorrow\)/,
    ],
    [
      "is of a newer version, says its database",
      repacked(async (entries) => {
        const content = await changedDatabase(
          lab.base,
          entries[0]?.content as Buffer,
          "insert into kysely_migration values ('9999-of-tomorrow', '2030')",
        );
        return withManifest([{ name: "mailwright.db", content }, ...entries.slice(1)]);
      }),
      /newer Mailwright/,
    ],
    [
      "claims less than it unpacks to",
      (entries) => bomb(entries, { claimed: 1_000 }),
      /(cannot be unpacked|not as long as it should be)/,
    ],
    [
      "would fill the disk",
      (entries) => bomb(entries, { claimed: 0xfffffff0 }),
      /There is no room|damaged|unpacked/,
    ],
    [
      "is encrypted",
      (entries) => zipOf(entries.map((one) => ({ ...one, encrypted: one.name === "mailwright.db" }))),
      /mailwright\.db is encrypted/,
    ],
    ["has a link in the place of a file", withLink, /master\.key is no ordinary file/],
  ];
  test.each(cases)("%s", async (name, make, words) => {
    const config = await lab.other(`hostile ${name}`.replaceAll(/\W/g, "-"));
    const before = await filesOf(config.data.dir);
    const archive = join(lab.base, "hostile.zip");
    await writeFile(archive, await make(await entriesOf(lab.archive), await readFile(lab.archive)));
    expect(await restored(config, archive)).toMatch(words);
    expect(await filesOf(config.data.dir)).toEqual(before);
  });

  test("has single rows that are wrong: it is restored as it was, and that is said", async () => {
    const entries = await entriesOf(lab.archive);
    const content = await changedDatabase(
      lab.base,
      entries[0]?.content as Buffer,
      `insert into api_keys (id, user_id, hash, prefix, last4, created) values ('k', 'nobody', 'h', 'p', 'l', 0);
       pragma writable_schema = on;
       update sqlite_schema set sql = replace(sql, '"name" text,', '"name" text not null,') where name = 'users'`,
    );
    const changed = withManifest([{ name: "mailwright.db", content }, ...entries.slice(1)]);
    const archive = await packed("odd.zip", changed);
    const config = lab.config("odd");
    expect(await restored(config, archive)).toMatchObject({
      oddities: ["NULL value in users.name", "1 row of api_keys names another that is not there"],
    });
    expect((await contentOf(config)).accounts).toEqual(["ada@example.com"]);
  });

  test("has a table whose name is a command: it is not obeyed", async () => {
    const other = new Sqlite(join(lab.base, "other.db"));
    other.exec("create table precious (x)");
    const name = `raw_mails" limit 0; attach '${other.name}' as o; drop table o.precious; --`;
    const entries = await entriesOf(lab.archive);
    const content = await changedDatabase(
      lab.base,
      entries[0]?.content as Buffer,
      `create table "${name.replaceAll('"', '""')}" (segment, segment_offset, size)`,
    );
    const changed = withManifest([{ name: "mailwright.db", content }, ...entries.slice(1)]);
    await restored(lab.config("commanded"), await packed("commanded.zip", changed));
    expect(other.prepare("select count(*) from precious").pluck().get()).toBe(0);
    other.close();
  });

  test("is not there, or is a folder", async () => {
    const config = lab.config("nothing");
    expect(await restored(config, join(lab.base, "nothing.zip"))).toContain("There is no file ");
    await mkdir(join(lab.base, "folder"), { recursive: true });
    expect(await restored(config, join(lab.base, "folder"))).toMatch(/cannot be read|no zip archive/);
  });

  function bomb(entries: Entries, { claimed }: { claimed: number }): Uint8Array {
    const content = Buffer.alloc(50_000_000);
    const named = withManifest([...entries, { name: "mail/00000002.seg", content }]);
    const lying = named.map((one) =>
      one.name === "manifest.json"
        ? {
            ...one,
            content: Buffer.from(String(one.content).replace('"size":50000000', `"size":${claimed}`)),
          }
        : one,
    );
    return zipOf(lying.map((one) => (one.content === content ? { ...one, claimed } : one)));
  }

  /** By what the table of contents says of its kind (APPNOTE 4.3.12). */
  function withLink(entries: Entries): Buffer {
    const archive = Buffer.from(zipOf(entries));
    const record = archive.lastIndexOf("master.key") - 46;
    archive.writeUInt16LE(3 << 8, record + 4);
    archive.writeUInt32LE((0o120777 << 16) >>> 0, record + 38);
    return archive;
  }
});

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(copy.length - 1) ^ 1, copy.length - 1);
  return copy;
}

async function packed(name: string, entries: { name: string; content: Buffer }[]): Promise<string> {
  await writeFile(join(lab.base, name), zipOf(entries));
  return join(lab.base, name);
}
