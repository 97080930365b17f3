import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import type { Config } from "../config.ts";
import { writeOnce } from "../lib/durable-file.ts";

const VALID_DAYS = 3_650;
const DAY_MS = 86_400_000;

/** Certificate and key, both PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

/** The certificate for STARTTLS: the operator's files, else a self-signed one made at the first start. */
export async function loadCertificate(config: Config): Promise<Certificate> {
  const { cert, key } = config.server;
  if (cert !== "") return { cert: await readPem("server.cert", cert), key: await readPem("server.key", key) };
  const path = join(config.data.dir, "smtp-certificate.json");
  try {
    return JSON.parse(await readFile(path, "utf8")) as Certificate;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const made = await makeCertificate(config.smtp.hostname);
  return JSON.parse(await writeOnce(path, JSON.stringify(made))) as Certificate;
}

async function readPem(setting: string, path: string): Promise<string> {
  const fix = `Set ${setting} to a file in PEM form that this user may read.`;
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new AppError("unavailable", `${setting} cannot be read: ${messageOf(error)}.`, { fix });
  });
  if (text.includes("-----BEGIN ")) return text;
  throw new AppError("unavailable", `${setting} (${path}) holds no PEM block.`, { fix });
}

async function makeCertificate(hostname: string): Promise<Certificate> {
  // Needed once in the life of a data folder, and slow to load.
  const { generate } = await import("selfsigned");
  const { cert, private: key } = await generate([{ name: "commonName", value: hostname }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notAfterDate: new Date(Date.now() + VALID_DAYS * DAY_MS),
  });
  return { cert, key };
}
