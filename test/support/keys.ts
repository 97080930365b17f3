import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { defaultConfig } from "../../src/config.ts";
import { loadDkimKeys } from "../../src/mail/dkim.ts";
import { loadCertificate } from "../../src/smtp/certificate.ts";

const FILES = ["dkim/keys.json", "smtp-certificate.json"];

/** Puts DKIM keys and a certificate for mx.mw.test into a data folder; the same ones for all tests of a process. */
export async function layKeys(dir: string): Promise<void> {
  for (const { name, bytes } of await made) {
    await mkdir(dirname(join(dir, name)), { recursive: true, mode: 0o700 });
    await writeFile(join(dir, name), bytes, { mode: 0o600 });
  }
}

/** They are slow to make. */
const made = (async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-keys-"));
  await loadDkimKeys(dir);
  await loadCertificate(defaultConfig({ data: { dir }, smtp: { hostname: "mx.mw.test" } }));
  const files = await Promise.all(
    FILES.map(async (name) => ({ name, bytes: await readFile(join(dir, name)) })),
  );
  await rm(dir, { recursive: true });
  return files;
})();
