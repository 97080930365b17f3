import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { readIfThere, replaceFile, writeOnce } from "../lib/durable-file.ts";
import type { Certificate } from "./pem.ts";

/** A certificate from an authority, with the names and authority it was ordered for. */
export interface StoredCertificate extends Certificate {
  directory: string;
  names: string[];
}

/** An order in progress: with its URL and its key it can be continued after a crash. */
export interface StoredOrder {
  directory: string;
  names: string[];
  url: string;
  key: string;
}

export function readStoredCertificate(config: Config): Promise<StoredCertificate | undefined> {
  return readStored(pathOf(config, "certificate.json"));
}

export function storeCertificate(config: Config, certificate: StoredCertificate): Promise<void> {
  return replaceFile(pathOf(config, "certificate.json"), JSON.stringify(certificate));
}

export function readStoredOrder(config: Config): Promise<StoredOrder | undefined> {
  return readStored(pathOf(config, "order.json"));
}

export function storeOrder(config: Config, order: StoredOrder): Promise<void> {
  return replaceFile(pathOf(config, "order.json"), JSON.stringify(order));
}

export function forgetOrder(config: Config): Promise<void> {
  return rm(pathOf(config, "order.json"), { force: true });
}

/** Returns the ACME account key of this server; `make` is called once in the life of a data folder. */
export async function accountKey(config: Config, make: () => Promise<string>): Promise<string> {
  await mkdir(pathOf(config, ""), { recursive: true, mode: 0o700 });
  const path = pathOf(config, "account-key.pem");
  return (await readIfThere(path)) ?? writeOnce(path, await make());
}

function pathOf(config: Config, name: string): string {
  return join(config.data.dir, "tls", name);
}

async function readStored<T>(path: string): Promise<T | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    // Files are written completely or not at all. A damaged one is ordered again, and no reason not to start.
    return undefined;
  }
}
