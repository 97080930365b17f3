import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { patientFiles } from "../lib/patient-files.ts";
import { AppError, messageOf } from "../errors.ts";
import type { Config } from "../config/config.ts";
import type { WatchLog } from "../db/watch.ts";
import { readIfThere, replaceFile, writeOnce } from "../lib/durable-file.ts";
import { storedJson } from "../lib/stored-json.ts";
import { type Certificate, pairFault } from "./pem.ts";
import { makeSelfSigned } from "./self-signed.ts";
import { readStoredCertificate } from "./store.ts";

const SELF_SIGNED = "smtp-certificate.json";

/** Returns the certificate for the start: the operator's files, or the authority's, or else a self-signed one. */
export async function loadCertificate(config: Config, log: WatchLog): Promise<Certificate> {
  if (config.server.cert !== "") return readFiles(config);
  const stored = config.server.tls === "acme" ? await readStoredCertificate(config) : undefined;
  return stored && pairFault(stored) === undefined ? stored : selfSigned(config, log);
}

/** Reads `server.cert` and `server.key`; throws AppError when they do not form a pair. */
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

/** The files may be on a share that hangs where others fail, and are looked at again and again. */
const pemFiles = patientFiles(
  5_000,
  () =>
    new AppError("unavailable", "The disk with server.cert and server.key does not answer.", {
      fix: "See that the disk or share with them is there.",
    }),
);

async function readPem(setting: string, path: string): Promise<string> {
  const fix = `Set ${setting} to a file in PEM form that this user may read.`;
  const read = (): Promise<string> =>
    readFile(path, "utf8").catch((error: unknown) => {
      throw new AppError("unavailable", `${setting} cannot be read: ${messageOf(error)}.`, { fix });
    });
  const text = await pemFiles.run(read);
  if (text.includes("-----BEGIN ")) return text;
  throw new AppError("unavailable", `${setting} (${path}) holds no PEM block.`, { fix });
}

/**
 * Returns the self-signed certificate: created at the first start and kept, and created again only when it is damaged.
 */
async function selfSigned({ data, smtp }: Config, log: WatchLog): Promise<Certificate> {
  const path = join(data.dir, SELF_SIGNED);
  const text = await readOwn(path);
  const stored = text === undefined ? undefined : usable(text);
  if (stored) return stored;
  const made = JSON.stringify(await makeSelfSigned(smtp.hostname));
  if (text === undefined) return JSON.parse(await writeOnce(path, made)) as Certificate;
  await replaceFile(path, made);
  log.warn(
    { path },
    "the self-signed certificate was damaged and was made anew: whoever has pinned the old one must be told",
  );
  return JSON.parse(made) as Certificate;
}

function usable(text: string): Certificate | undefined {
  const stored = storedJson<Partial<Certificate> | null>(text, null);
  if (typeof stored?.cert !== "string" || typeof stored.key !== "string") return undefined;
  const pair = { cert: stored.cert, key: stored.key };
  return pairFault(pair) === undefined ? pair : undefined;
}

async function readOwn(path: string): Promise<string | undefined> {
  try {
    return await readIfThere(path);
  } catch (error) {
    throw new AppError("unavailable", `The certificate ${path} cannot be read: ${messageOf(error)}.`, {
      fix: "Let the server's user read it, or remove it: another is made then.",
    });
  }
}
