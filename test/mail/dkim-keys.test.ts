import { describe, expect, test } from "bun:test";
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { createApp } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { openDatabase } from "../../src/db/database.ts";
import type { DkimKeyRow } from "../../src/db/schema.ts";
import { loadMasterKey } from "../../src/lib/secrets.ts";
import { createLog } from "../../src/lib/log.ts";
import { dnsRecords, pemOf, publicPart } from "../../src/mail/writing/dkim.ts";
import { chosenKeys, domainKeys, keyRows, serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { damagedKeysWarning } from "../../src/resources/domains/key-home.ts";
import { fullText } from "../../src/errors.ts";
import { layKeys, testKeys } from "../support/keys.ts";

const MASTER = Buffer.alloc(32, 7).toString("base64");
const DOMAIN = "mw.test";

describe("a data folder of the first versions", () => {
  test("keeps the keys of its file, which are sealed in the database from then on", async () => {
    await using folder = await dataFolder();
    await layKeys(folder.path);
    const before = dnsRecords(await testKeys(), DOMAIN);
    {
      await using app = await open(folder.path);
      expect(dnsRecords(await serviceKeys(app), DOMAIN)).toEqual(before);
    }
    expect(existsSync(join(folder.path, "dkim"))).toBe(false);
    await using again = await open(folder.path);
    expect(dnsRecords(await serviceKeys(again), DOMAIN)).toEqual(before);
    const secrets = (await testKeys()).map(({ private_key }) => pemOf(private_key).split("\n")[1] ?? "");
    for (const name of await readdir(folder.path, { recursive: true })) {
      const file = Bun.file(join(folder.path, name));
      const text = (await file.exists()) ? await file.text() : "";
      expect([name, secrets.some((secret) => text.includes(secret))]).toEqual([name, false]);
    }
  });

  test("keeps the key of a custom domain, and gets an Ed25519 key beside it that does not sign yet", async () => {
    await using folder = await dataFolder();
    const id = Bun.randomUUIDv7();
    const pem = pemOf(generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey);
    const p = publicPart({ algorithm: "rsa", private_key: createPrivateKey(pem) });
    await fillOldDomain(folder.path, { id, pem, p });
    await using app = await open(folder.path);
    const [rsa, ed25519, ...rest] = await keyRows(app.db, id);
    expect([rsa?.selector, rsa?.public_part, rsa?.state, rsa?.record]).toEqual([
      "s1",
      p,
      "signing",
      "unknown",
    ]);
    expect([ed25519?.selector, ed25519?.algorithm, ed25519?.record]).toEqual(["e1", "ed25519", "absent"]);
    expect(rest).toEqual([]);
    const [only, ...others] = await domainKeys(app, id);
    expect(others).toEqual([]);
    expect(only && pemOf(only.private_key)).toBe(pem);
    const domain = await app.db.selectFrom("custom_domains").selectAll().executeTakeFirstOrThrow();
    expect(Object.keys(domain).filter((name) => name.startsWith("dkim"))).toEqual([]);
  });

  test("whose key file is unreadable is an error naming the file and the mend, and is left as it is", async () => {
    for (const text of ["[{}]", "{", '[{"selector":"s1","algorithm":"rsa","private_key":"x"}]']) {
      await using folder = await dataFolder();
      const path = join(folder.path, "dkim", "keys.json");
      await mkdir(join(folder.path, "dkim"));
      await writeFile(path, text);
      const failure = await open(folder.path).then(
        () => "",
        (error: unknown) => fullText(error),
      );
      expect(failure).toMatch(/keys\.json does not hold DKIM keys.*backup/);
      expect(await Bun.file(path).text()).toBe(text);
    }
  });

  test("that lost power before its key file was removed loses it at the next start", async () => {
    await using folder = await dataFolder();
    await layKeys(folder.path);
    for (const _ of [1, 2]) {
      await using app = await open(folder.path);
      expect(await keyRows(app.db, null)).toHaveLength(2);
      expect(existsSync(join(folder.path, "dkim"))).toBe(false);
      await layKeys(folder.path);
    }
  });

  test("whose keys are in the database already keeps a file with others, unused", async () => {
    await using folder = await dataFolder();
    let records;
    {
      await using app = await open(folder.path);
      records = dnsRecords(await serviceKeys(app), DOMAIN);
    }
    await layKeys(folder.path);
    await using app = await open(folder.path);
    expect(dnsRecords(await serviceKeys(app), DOMAIN)).toEqual(records);
    expect(existsSync(join(folder.path, "dkim", "keys.json"))).toBe(true);
  });
});

describe("a new data folder", () => {
  test("gets an RSA and an Ed25519 key, the same when two processes start at once", async () => {
    await using folder = await dataFolder();
    // The master key is made by one of them as well.
    await using first = await open(folder.path);
    await first.db.deleteFrom("dkim_keys").execute();
    const apps = await Promise.all([open(folder.path), open(folder.path)]);
    try {
      const seen = await Promise.all(apps.map(async (app) => dnsRecords(await serviceKeys(app), DOMAIN)));
      expect(seen[0]?.map(({ name }) => name)).toEqual(["s1._domainkey.mw.test", "e1._domainkey.mw.test"]);
      expect(seen[1]).toEqual(seen[0] as never);
      expect(await keyRows(first.db, null)).toHaveLength(2);
    } finally {
      for (const app of apps) await app[Symbol.asyncDispose]();
    }
  });

  test("that is damaged at a start says so before a mail needs its keys", async () => {
    await using folder = await dataFolder();
    {
      await using app = await open(folder.path);
      const sealed = Buffer.from("x");
      await app.db.updateTable("dkim_keys").set({ sealed }).where("selector", "=", "e1").execute();
    }
    await using app = await open(folder.path);
    expect((await damagedKeysWarning(app))?.found).toContain("e1 of mw.test");
    expect((await serviceKeys(app)).map(({ selector }) => selector)).toEqual(["s1"]);
  });

  test("whose check of the master key is damaged or lost opens with the right key, and with no other", async () => {
    await using folder = await dataFolder();
    const damage = async () => {
      await using app = await open(folder.path);
      await app.db
        .updateTable("installation")
        .set({ value: Buffer.from("x") })
        .where("name", "=", "key_check")
        .execute();
    };
    await damage();
    await damage();
    const other = Buffer.alloc(32, 8).toString("base64");
    expect(await open(folder.path, other).catch(fullText)).toContain(
      "not the one this database was made with",
    );
    {
      await using app = await open(folder.path);
      await app.db.deleteFrom("installation").where("name", "=", "key_check").execute();
    }
    expect(await open(folder.path, other).catch(fullText)).toContain(
      "not the one this database was made with",
    );
    await using app = await open(folder.path);
    expect(await serviceKeys(app)).toHaveLength(2);
  });

  test("holds no key that opens under another id", async () => {
    await using folder = await dataFolder();
    await using app = await open(folder.path);
    const [one, two] = await keyRows(app.db, null);
    expect(() => app.secrets.open(one?.sealed ?? new Uint8Array(), two?.id ?? "")).toThrow();
  });
});

describe("which keys sign", () => {
  const key = (selector: string, state: DkimKeyRow["state"], record: DkimKeyRow["record"]): DkimKeyRow => ({
    id: selector,
    domain_id: null,
    selector,
    algorithm: selector.startsWith("s") ? "rsa" : "ed25519",
    public_part: "",
    sealed: new Uint8Array(),
    state,
    record,
    seen_at: null,
    created: 0,
    retired_at: null,
  });
  const CASES: [claim: string, rows: DkimKeyRow[], signing: string[]][] = [
    [
      "both where both records are seen",
      [key("s1", "signing", "seen"), key("e1", "signing", "seen")],
      ["s1", "e1"],
    ],
    [
      "both where nobody has looked yet",
      [key("s1", "signing", "unknown"), key("e1", "signing", "unknown")],
      ["s1", "e1"],
    ],
    [
      "RSA alone where the other is absent",
      [key("s1", "signing", "seen"), key("e1", "signing", "absent")],
      ["s1"],
    ],
    [
      "RSA alone where none is there",
      [key("s1", "signing", "absent"), key("e1", "signing", "absent")],
      ["s1"],
    ],
    [
      "Ed25519 alone where only that is there",
      [key("s1", "signing", "absent"), key("e1", "signing", "seen")],
      ["e1"],
    ],
    ["never one that waits", [key("s1", "signing", "seen"), key("s2", "waiting", "absent")], ["s1"]],
    [
      "never one that waits, even with nothing else",
      [key("s1", "signing", "absent"), key("s2", "waiting", "absent")],
      ["s1"],
    ],
    [
      "the new one before the one it replaced",
      [key("s1", "retired", "seen"), key("s2", "signing", "seen")],
      ["s2"],
    ],
    [
      "the replaced one while the new record is gone",
      [key("s1", "retired", "seen"), key("s2", "signing", "absent")],
      ["s1"],
    ],
    ["none that was dropped", [key("s1", "dropped", "seen"), key("s2", "signing", "absent")], ["s2"]],
  ];
  test.each(CASES)("%s", (_claim, rows, signing) => {
    expect(chosenKeys(rows).map(({ selector }) => selector)).toEqual(signing);
  });
});

function open(dir: string, master_key = MASTER) {
  const config = defaultConfig({
    data: { dir },
    smtp: { domain: DOMAIN, hostname: "mx.mw.test" },
    security: { master_key },
  });
  return createApp(config, { log: createLog({ level: "silent", format: "text" }) });
}

async function dataFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "mailwright-dkim-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

/** A custom domain as the version before left it: its only key in its own row. */
async function fillOldDomain(
  dir: string,
  { id, pem, p }: { id: string; pem: string; p: string },
): Promise<void> {
  await using database = openDatabase(`sqlite:${join(dir, "mailwright.db")}`);
  const before = Object.entries(migrations).filter(([name]) => name < "0007");
  const provider = { getMigrations: async () => Object.fromEntries(before) as Record<string, Migration> };
  const { error } = await new Migrator({ db: database.db, provider }).migrateToLatest();
  if (error) throw error as Error;
  const secrets = await loadMasterKey({ configured: MASTER, dir: "", create: false });
  const any = database.db as unknown as Kysely<Record<string, Record<string, unknown>>>;
  const user = {
    id: Bun.randomUUIDv7(),
    email: "ada@example.com",
    email_verified: 1,
    plan: "team",
    is_admin: 0,
    created: 1,
  };
  await any.insertInto("users").values(user).execute();
  const row = {
    id,
    user_id: user.id,
    domain: "ai.acme.test",
    status: "active",
    ownership_token: "x",
    dkim_selector: "s1",
    dkim_public: p,
    dkim_sealed: Buffer.from(secrets.seal(pem, id)),
    findings: JSON.stringify({ dkim: { status: "verified", found: [], reason: "It is there." } }),
    misses: 0,
    created: 1,
  };
  await any.insertInto("custom_domains").values(row).execute();
}
