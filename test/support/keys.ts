import { createPrivateKey, type KeyObject } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { defaultConfig } from "../../src/config/config.ts";
import { openDatabase } from "../../src/db/database.ts";
import { openMasterKey } from "../../src/db/master-key.ts";
import { createLog } from "../../src/lib/log.ts";
import {
  type DkimKey,
  type DkimKeyMaker,
  type DkimKeys,
  makeDkimKey,
  pemOf,
} from "../../src/mail/writing/dkim.ts";
import { serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { loadCertificate } from "../../src/tls/certificate.ts";

const CERTIFICATE = "smtp-certificate.json";
const KEY_FILE = "dkim/keys.json";

/**
 * Puts DKIM keys, in the file of the first versions, and a certificate for mx.mw.test into a data folder; the same
 * ones for all tests of a process.
 */
export async function layKeys(dir: string): Promise<void> {
  for (const { name, bytes } of await made) {
    await mkdir(dirname(join(dir, name)), { recursive: true, mode: 0o700 });
    await writeFile(join(dir, name), bytes, { mode: 0o600 });
  }
}

/** Those that `layKeys` puts there. */
export async function testKeys(): Promise<DkimKeys> {
  const file = (await made).find(({ name }) => name === KEY_FILE);
  const stored = JSON.parse(String(file?.bytes)) as {
    selector: string;
    algorithm: "rsa";
    private_key: string;
  }[];
  return stored.map(({ private_key, ...key }) => ({ ...key, private_key: createPrivateKey(private_key) }));
}

/** So many are enough for keys of one domain that follow each other to differ. */
const SPARE_KEYS = 6;
const spare: Record<DkimKey["algorithm"], Promise<KeyObject>[]> = { rsa: [], ed25519: [] };

/** Hands out the same few keys in turn, because making one for RSA takes a tenth of a second. */
export const spareKey: DkimKeyMaker = (algorithm) => {
  const keys = spare[algorithm];
  const oldest = keys.length < SPARE_KEYS ? undefined : keys.shift();
  const key = oldest ?? makeDkimKey(algorithm);
  keys.push(key);
  return key;
};

/** What a server on this data folder signs with. */
export async function keysOf(dir: string): Promise<DkimKeys> {
  await using database = openDatabase(`sqlite:${join(dir, "mailwright.db")}`);
  const log = createLog({ level: "silent", format: "text" });
  const secrets = await openMasterKey({ ...database, log }, { configured: "", dir });
  return serviceKeys({ db: database.db, secrets, log });
}

/** Keys are made once for all tests, because making them is slow. */
const made = (async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-keys-"));
  const config = defaultConfig({ data: { dir }, smtp: { hostname: "mx.mw.test" } });
  await loadCertificate(config, createLog({ level: "warn", format: "text" }));
  const certificate = await readFile(join(dir, CERTIFICATE));
  await rm(dir, { recursive: true });
  const keys = [
    { selector: "s1", algorithm: "rsa", private_key: pemOf(await makeDkimKey("rsa")) },
    { selector: "e1", algorithm: "ed25519", private_key: pemOf(await makeDkimKey("ed25519")) },
  ];
  return [
    { name: KEY_FILE, bytes: Buffer.from(JSON.stringify(keys)) },
    { name: CERTIFICATE, bytes: certificate },
  ];
})();
