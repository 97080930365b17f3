import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import type { Config } from "../config.ts";
import { writeOnce } from "../lib/durable-file.ts";
import { type Certificate, pairFault } from "./pem.ts";
import { readStoredCertificate } from "./store.ts";

const VALID_DAYS = 3_650;
const DAY_MS = 86_400_000;

/** What this server shows at its start: the operator's files, or what an authority has given, else a self-signed one. */
export async function loadCertificate(config: Config): Promise<Certificate> {
  if (config.server.cert !== "") return readFiles(config);
  const stored = config.server.tls === "acme" ? await readStoredCertificate(config) : undefined;
  return stored && pairFault(stored) === undefined ? stored : selfSigned(config);
}

/** `server.cert` and `server.key`, if they are a pair; throws AppError when not. */
export async function readFiles(config: Config): Promise<Certificate> {
  const { cert, key } = config.server;
  const pair = { cert: await readPem("server.cert", cert), key: await readPem("server.key", key) };
  const fault = pairFault(pair);
  if (fault === undefined) return pair;
  throw new AppError(
    "unavailable",
    `The certificate in ${cert} with the key in ${key} is of no use. ${fault}`,
    {
      fix: "Set server.cert to the chain and server.key to the private key it was made for.",
    },
  );
}

async function readPem(setting: string, path: string): Promise<string> {
  const fix = `Set ${setting} to a file in PEM form that this user may read.`;
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new AppError("unavailable", `${setting} cannot be read: ${messageOf(error)}.`, { fix });
  });
  if (text.includes("-----BEGIN ")) return text;
  throw new AppError("unavailable", `${setting} (${path}) holds no PEM block.`, { fix });
}

/** Made at the first start, and the same from then on. */
async function selfSigned({ data, smtp }: Config): Promise<Certificate> {
  const path = join(data.dir, "smtp-certificate.json");
  try {
    return JSON.parse(await readFile(path, "utf8")) as Certificate;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const made = await makeCertificate(smtp.hostname);
  return JSON.parse(await writeOnce(path, JSON.stringify(made))) as Certificate;
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
