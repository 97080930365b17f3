import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import { readIfThere, replaceFile, writeOnce } from "./durable-file.ts";
import { sha256 } from "./sha256.ts";

const MASTER_KEY_BYTES = 32;
const SUBKEY_BYTES = 32;
const NONCE_BYTES = 12; // NIST SP 800-38D §8.2.2: 96 random bits
const TAG_BYTES = 16;
const KEY_ID_BYTES = 4;
const SEAL_VERSION = 1;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES;
/** Characters of the name by which another key is kept. */
const OTHER_KEY_CHARS = 8;
/** Mode bits that let group or others access a file. */
const WIDE_MODE = 0o077;

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567"; // RFC 4648 §6 in lower case
const KEY_PREFIX = "mw_live_";
const KEY_RANDOM_CHARS = 40; // about 238 bits
const KEY_CHECK_CHARS = 6; // 62^6 > 2^32
const KEY_FORM = /^mw_live_[0-9A-Za-z]{46}$/;

/** Letters and digits that are not easily confused, for the token of an inbox address. */
export const ADDRESS_TOKEN_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789";

export interface Secrets {
  /**
   * Encrypts text for storage. `aad` (additional authenticated data, such as a connection's id) binds the result to its
   * owner, so that it cannot be opened as another's.
   */
  seal: (plaintext: string, aad: string) => Uint8Array;
  /** Throws AppError "internal" when the bytes were changed, moved, or sealed under another master key. */
  open: (sealed: Uint8Array, aad: string) => string;
  /** Returns the HMAC-SHA256 of `text` under a key derived for the purpose. */
  hmac: (purpose: string, text: string) => Buffer;
  /**
   * Writes the key file again if it is missing or holds anything else, which is kept beside it, and returns whether it
   * did; always false where the key is configured.
   */
  putBack: () => Promise<boolean>;
  /** A warning for the log when other users can read the key file; otherwise null. */
  warning: string | null;
}

/**
 * Loads the master key from `security.master_key` (base64 of 32 bytes) or from `<dir>/master.key`, which is created at
 * the first start. Throws AppError "internal" when the key is there but unusable: with a new one, everything sealed
 * before would be lost.
 */
export async function loadMasterKey(options: {
  configured: string;
  dir: string;
  /** Whether to create a key where there is none. */
  create: boolean;
}): Promise<Secrets> {
  if (options.configured !== "") {
    return createSecrets(decodeMasterKey(options.configured, "security.master_key"), {
      warning: null,
      putBack: () => Promise.resolve(false),
    });
  }
  const file = join(options.dir, "master.key");
  const stored = await readKeyFile(file);
  if (stored === undefined && !options.create) throw lostKey(file);
  const text = stored ?? (await createKeyFile(options.dir, file));
  return createSecrets(decodeMasterKey(text, file), {
    warning: await permissionWarning(file),
    async putBack() {
      const there = await readIfThere(file);
      if (there === undefined) return (await writeOnce(file, text)) === text;
      if (there.trim() === text.trim()) return false;
      await writeOnce(`${file}.${sha256(there, "hex").slice(0, OTHER_KEY_CHARS)}.other`, there);
      await replaceFile(file, text);
      return true;
    },
  });
}

function lostKey(file: string): AppError {
  return new AppError(
    "unavailable",
    `The master key ${file} is gone, and the database holds what was sealed with it.`,
    {
      fix: "Put the file back from a backup, or set security.master_key to the key used before.",
    },
  );
}

/** Returns a new API key. Only `hash` is stored, with `prefix` and `last4` to recognize it by. */
export function mintApiKey(): { key: string; hash: string; prefix: string; last4: string } {
  const random = randomToken(KEY_RANDOM_CHARS, BASE62);
  const key = `${KEY_PREFIX}${random}${keyChecksum(random)}`;
  return { key, hash: hashSecret(key), prefix: key.slice(0, KEY_PREFIX.length + 4), last4: key.slice(-4) };
}

/**
 * Returns whether the form and the check characters of an API key fit, so that a typing error never reaches the
 * database.
 */
export function checkApiKeyFormat(key: string): boolean {
  if (!KEY_FORM.test(key)) {
    return false;
  }
  const random = key.slice(KEY_PREFIX.length, -KEY_CHECK_CHARS);
  return key.endsWith(keyChecksum(random));
}

/** Returns the SHA-256 in hex of a random key or token; with so many random bits a slow hash would add nothing. */
export function hashSecret(secret: string): string {
  return sha256(secret, "hex");
}

/** Returns `length` random characters of `alphabet` (2 to 256 characters), all equally likely. */
export function randomToken(length: number, alphabet: string): string {
  // Bytes above the last whole multiple would favour the first characters, so they are skipped.
  const limit = 256 - (256 % alphabet.length);
  let token = "";
  while (token.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < limit && token.length < length) {
        token += alphabet.charAt(byte % alphabet.length);
      }
    }
  }
  return token;
}

/** Compares in constant time for values of equal length; their length is no secret. */
export function equalBytes(a: string | Uint8Array, b: string | Uint8Array): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Returns the first `length` characters of the bytes in lower-case base32, for tokens inside mail addresses. */
export function base32Token(bytes: Uint8Array, length: number): string {
  let token = "";
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5 && token.length < length) {
      bits -= 5;
      token += BASE32.charAt((held >>> bits) & 31);
    }
    held &= (1 << bits) - 1;
  }
  return token;
}

function keyChecksum(random: string): string {
  let rest = Bun.hash.crc32(random);
  let digits = "";
  for (let index = 0; index < KEY_CHECK_CHARS; index++) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

async function readKeyFile(file: string): Promise<string | undefined> {
  try {
    return await readIfThere(file);
  } catch (error) {
    throw new AppError("internal", `The master key ${file} cannot be read: ${messageOf(error)}.`, {
      fix: "Let the account that runs Mailwright own this file, with mode 0600.",
    });
  }
}

/**
 * Creates the key file. Returns the key in it, which is that of another process if both start together and the other is
 * faster.
 */
async function createKeyFile(dir: string, file: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  return writeOnce(file, `${randomBytes(MASTER_KEY_BYTES).toString("base64")}\n`);
}

function decodeMasterKey(text: string, source: string): Buffer {
  const trimmed = text.trim();
  const key = Buffer.from(trimmed, "base64");
  // Buffer skips characters that are not base64; encoding the result again shows whether it did.
  const unpadded = trimmed
    .replace(/(?<!=)=+$/, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  if (key.length !== MASTER_KEY_BYTES || key.toString("base64").replace(/(?<!=)=+$/, "") !== unpadded) {
    throw new AppError("internal", `The master key in ${source} is not 32 bytes in base64.`, {
      fix: "Put the original key back. Only on a new installation make another, with: openssl rand -base64 32",
    });
  }
  return key;
}

async function permissionWarning(file: string): Promise<string | null> {
  const { mode } = await stat(file);
  return (mode & WIDE_MODE) === 0
    ? null
    : `Other users of this machine can read the master key. Mend it with: chmod 600 ${file}`;
}

function createSecrets(master: Buffer, file: Pick<Secrets, "warning" | "putBack">): Secrets {
  const subkeys = new Map<string, Buffer>();
  const subkey = (purpose: string): Buffer => {
    const known = subkeys.get(purpose);
    if (known !== undefined) {
      return known;
    }
    const made = Buffer.from(hkdfSync("sha256", master, "", `mailwright:${purpose}`, SUBKEY_BYTES));
    subkeys.set(purpose, made);
    return made;
  };
  const sealKey = subkey("seal:1");
  const keyId = subkey("key-id").subarray(0, KEY_ID_BYTES);
  return {
    ...file,
    seal: (plaintext, aad) => sealWith(sealKey, keyId, plaintext, aad),
    open: (sealed, aad) => openWith(sealKey, keyId, sealed, aad),
    hmac: (purpose, text) =>
      createHmac("sha256", subkey(`hmac:${purpose}`))
        .update(text)
        .digest(),
  };
}

/** Returns version (1 byte), key id (4), nonce (12), ciphertext, tag (16). The key id allows changing the key later. */
function sealWith(key: Buffer, keyId: Buffer, plaintext: string, aad: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const head = Buffer.concat([Buffer.of(SEAL_VERSION), keyId, nonce]);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(sealedAad(head, aad));
  const ciphertext = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final()]);
  return Buffer.concat([head, ciphertext, cipher.getAuthTag()]);
}

function openWith(key: Buffer, keyId: Buffer, sealed: Uint8Array, aad: string): string {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  if (bytes.length < HEADER_BYTES + TAG_BYTES || bytes[0] !== SEAL_VERSION) {
    throw unopenable("is damaged, or was sealed by a newer version");
  }
  if (!bytes.subarray(1, 1 + KEY_ID_BYTES).equals(keyId)) {
    throw unopenable("was sealed under another master key");
  }
  const head = bytes.subarray(0, HEADER_BYTES);
  const nonce = bytes.subarray(1 + KEY_ID_BYTES, HEADER_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(sealedAad(head, aad)).setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const plaintext = decipher.update(bytes.subarray(HEADER_BYTES, -TAG_BYTES));
    return Buffer.concat([plaintext, decipher.final()]).toString("utf8");
  } catch {
    throw unopenable("was changed, or belongs to something else");
  }
}

function sealedAad(head: Buffer, aad: string): Buffer {
  return Buffer.concat([head.subarray(0, 1 + KEY_ID_BYTES), Buffer.from(aad, "utf8")]);
}

function unopenable(cause: string): AppError {
  return new AppError("internal", `A stored secret cannot be opened: it ${cause}.`, {
    fix: "Restore the master key that belongs to this database, or enter the credential again.",
  });
}
