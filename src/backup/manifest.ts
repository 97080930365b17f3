import { AppError } from "../errors.ts";

/** Names that an archive may contain; nothing else is ever written to a data folder. */
export const MANIFEST = "manifest.json";
export const DATABASE = "mailwright.db";
const KEY_FILE = /^(master\.key|smtp-certificate\.json|(tls|dkim)\/[\w-]+\.(json|pem))$/;
const SEGMENT = /^mail\/\d{8}\.seg$/;
const FORMAT = 1;

export interface ArchiveEntry {
  name: string;
  size: number;
  /** Hex. */
  sha256: string;
}

/** What a backup says about itself: the last entry of its archive. */
export interface Manifest {
  format: number;
  /** The version of Mailwright that made it. */
  version: string;
  /** Unix seconds. */
  created: number;
  hostname: string;
  migrations: string[];
  /** Whether it contains the mail files beside the database. */
  mail: boolean;
  /** `configured`: the key is in `security.master_key` of the configuration, and not in the archive. */
  master_key: "included" | "configured";
  counts: { accounts: number; inboxes: number; messages: number };
  /** Bytes of mails that were missing in the data folder, and are zeros here. */
  missing_bytes: number;
  entries: ArchiveEntry[];
}

export function manifestOf(facts: Omit<Manifest, "format">): Manifest {
  return { format: FORMAT, ...facts };
}

export function isAllowed(name: string): boolean {
  return name === DATABASE || isKeyFile(name) || isSegment(name);
}

export function isKeyFile(name: string): boolean {
  return KEY_FILE.test(name);
}

export function isSegment(name: string): boolean {
  return SEGMENT.test(name);
}

/** Returns counts as text: "1 account, 2 inboxes, 3 messages". */
export function countsInWords({ accounts, inboxes, messages }: Manifest["counts"]): string {
  const some = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
  return [
    some(accounts, "account", "accounts"),
    some(inboxes, "inbox", "inboxes"),
    some(messages, "message", "messages"),
  ].join(", ");
}

export function segmentName(segment: number): string {
  return `mail/${String(segment).padStart(8, "0")}.seg`;
}

/** Parses a manifest that anybody may have written; throws an AppError. */
export function parseManifest(text: string): Manifest {
  const manifest = parsed(text);
  if (isManifest(manifest)) return manifest;
  throw notABackup("its manifest is not one of ours");
}

export function notABackup(why: string): AppError {
  return new AppError("unavailable", `This is no usable backup of Mailwright: ${why}.`, {
    fix: "Use another copy or an older backup. Nothing was changed.",
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isManifest(value: unknown): value is Manifest {
  if (typeof value !== "object" || value === null) return false;
  const { format, version, created, hostname, migrations, mail, master_key, counts, missing_bytes, entries } =
    value as Partial<Record<keyof Manifest, unknown>>;
  return (
    format === FORMAT &&
    [version, hostname].every((text) => typeof text === "string") &&
    [created, missing_bytes].every(isCount) &&
    typeof mail === "boolean" &&
    ["included", "configured"].includes(String(master_key)) &&
    areCounts(counts) &&
    isListOf(migrations, (name) => typeof name === "string") &&
    isListOf(entries, isEntry)
  );
}

function isListOf(value: unknown, isOne: (member: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isOne);
}

function areCounts(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { accounts, inboxes, messages } = value as Partial<Manifest["counts"]>;
  return [accounts, inboxes, messages].every(isCount);
}

function isEntry(value: unknown): value is ArchiveEntry {
  if (typeof value !== "object" || value === null) return false;
  const { name, size, sha256 } = value as Partial<ArchiveEntry>;
  return (
    typeof name === "string" && isCount(size) && typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256)
  );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
