import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import type { Config } from "../config.ts";
import { writeOnce } from "../lib/durable-file.ts";
import { type Certificate, pairFault } from "./pem.ts";
import { makeSelfSigned } from "./self-signed.ts";
import { readStoredCertificate } from "./store.ts";

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
  const made = await makeSelfSigned(smtp.hostname);
  return JSON.parse(await writeOnce(path, JSON.stringify(made))) as Certificate;
}
