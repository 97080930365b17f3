import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppError } from "../../src/errors.ts";
import {
  ADDRESS_TOKEN_ALPHABET,
  base32Token,
  checkApiKeyFormat,
  equalBytes,
  hashSecret,
  loadMasterKey,
  mintApiKey,
  randomToken,
} from "../../src/lib/secrets.ts";

const KEY_A = Buffer.alloc(32, 1).toString("base64");
const KEY_B = Buffer.alloc(32, 2).toString("base64");

async function tempDir(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "mailwright-secrets-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

const secretsOf = (configured: string) => loadMasterKey({ create: true, configured, dir: "/nowhere" });

test("makes a master key of 32 bytes that only its owner can read, and finds it again", async () => {
  await using dir = await tempDir();
  const data = join(dir.path, "data");
  const first = await loadMasterKey({ create: true, configured: "", dir: data });
  const file = join(data, "master.key");
  expect(Buffer.from(await readFile(file, "utf8"), "base64")).toHaveLength(32);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(data)).mode & 0o777).toBe(0o700);
  expect(await readdir(data)).toEqual(["master.key"]);
  expect(first.warning).toBeNull();

  const second = await loadMasterKey({ create: true, configured: "", dir: data });
  expect(second.open(first.seal("hello", "a"), "a")).toBe("hello");
});

test("two first starts at once end with one key", async () => {
  await using dir = await tempDir();
  const all = await Promise.all(
    Array.from({ length: 8 }, () => loadMasterKey({ create: true, configured: "", dir: dir.path })),
  );
  const macs = new Set(all.map((secrets) => secrets.hmac("test", "x").toString("hex")));
  expect(macs.size).toBe(1);
  expect(await readdir(dir.path)).toEqual(["master.key"]);
});

test("puts its key back where another one, or none, has taken its place, and keeps the other one", async () => {
  await using dir = await tempDir();
  const file = join(dir.path, "master.key");
  const secrets = await loadMasterKey({ create: true, configured: "", dir: dir.path });
  const text = await readFile(file, "utf8");
  expect(await secrets.putBack()).toBe(false);
  await writeFile(file, KEY_B);
  expect(await secrets.putBack()).toBe(true);
  expect([await readFile(file, "utf8"), (await stat(file)).mode & 0o777]).toEqual([text, 0o600]);
  const other = (await readdir(dir.path)).find((name) => name.endsWith(".other"));
  expect(await readFile(join(dir.path, other ?? ""), "utf8")).toBe(KEY_B);
  await rm(file);
  expect(await secrets.putBack()).toBe(true);
  expect(await secrets.putBack()).toBe(false);
});

test("refuses a key file of another length instead of replacing it", async () => {
  await using dir = await tempDir();
  const file = join(dir.path, "master.key");
  for (const text of ["", "c2hvcnQ=", `${KEY_A}!`, Buffer.alloc(33).toString("base64"), "x".repeat(44)]) {
    await writeFile(file, text, { mode: 0o600 });
    const error = await loadMasterKey({ create: true, configured: "", dir: dir.path }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(AppError);
    expect((error as AppError).message).toContain("is not 32 bytes in base64");
    expect((error as AppError).message).toContain(file);
    expect(await readFile(file, "utf8")).toBe(text);
  }
});

test("warns about a key file that others can read, and names the mend", async () => {
  await using dir = await tempDir();
  const file = join(dir.path, "master.key");
  await writeFile(file, KEY_A);
  await chmod(file, 0o644);
  const { warning } = await loadMasterKey({ create: true, configured: "", dir: dir.path });
  expect(warning).toContain(`chmod 600 ${file}`);
});

test("a configured key needs no folder, in both alphabets of base64", async () => {
  const bytes = Buffer.alloc(32, 0xfb);
  const plain = await secretsOf(bytes.toString("base64"));
  const url = await secretsOf(` ${bytes.toString("base64url")}\n`);
  expect(url.hmac("a", "b")).toEqual(plain.hmac("a", "b"));
  expect(plain.warning).toBeNull();
});

test("names the setting and never the value of a bad configured key", async () => {
  const error: unknown = await secretsOf("my-secret-that-is-no-key").catch((thrown: unknown) => thrown);
  expect((error as AppError).message).toContain("security.master_key");
  expect(JSON.stringify(error) + (error as AppError).message).not.toContain("my-secret");
});

test("opens what it sealed, and seals the same text differently each time", async () => {
  const secrets = await secretsOf(KEY_A);
  for (const text of ["", "sk-123", "żółć 🙂", "x".repeat(100_000)]) {
    expect(secrets.open(secrets.seal(text, "connection-1"), "connection-1")).toBe(text);
  }
  const [one, two] = [secrets.seal("same", "a"), secrets.seal("same", "a")];
  expect(Buffer.from(one).equals(two)).toBe(false);
  expect(Buffer.from(one).includes("same")).toBe(false);
});

test("opens sealed bytes that are a view into a larger buffer", async () => {
  const secrets = await secretsOf(KEY_A);
  const sealed = secrets.seal("text", "a");
  const padded = new Uint8Array(sealed.length + 20);
  padded.set(sealed, 7);
  expect(secrets.open(padded.subarray(7, 7 + sealed.length), "a")).toBe("text");
});

test("refuses to open when any bit was changed, bytes are missing, or the owner is another", async () => {
  const secrets = await secretsOf(KEY_A);
  const sealed = secrets.seal("token", "connection-1");
  for (let index = 0; index < sealed.length; index++) {
    const changed = Uint8Array.from(sealed);
    changed[index] = (changed[index] ?? 0) ^ 1;
    expect(() => secrets.open(changed, "connection-1")).toThrow(AppError);
  }
  for (let length = 0; length < sealed.length; length++) {
    expect(() => secrets.open(sealed.subarray(0, length), "connection-1")).toThrow(AppError);
  }
  expect(() => secrets.open(sealed, "connection-2")).toThrow("belongs to something else");
});

test("says so when another master key is in place", async () => {
  const sealed = (await secretsOf(KEY_A)).seal("token", "a");
  const other = await secretsOf(KEY_B);
  expect(() => other.open(sealed, "a")).toThrow("was sealed under another master key");
});

test("gives each purpose its own key, which is not the master key", async () => {
  const secrets = await secretsOf(KEY_A);
  expect(secrets.hmac("session", "x")).toEqual(secrets.hmac("session", "x"));
  expect(secrets.hmac("session", "x")).not.toEqual(secrets.hmac("code", "x"));
  expect(secrets.hmac("session", "x")).not.toEqual(secrets.hmac("session", "y"));
  expect(secrets.hmac("session", "x")).toHaveLength(32);
  const raw = new Bun.CryptoHasher("sha256", Buffer.from(KEY_A, "base64")).update("x").digest("hex");
  expect(secrets.hmac("", "x").toString("hex")).not.toBe(raw);
});

test("mints API keys of the documented form", () => {
  const minted = mintApiKey();
  expect(minted.key).toMatch(/^mw_live_[0-9A-Za-z]{46}$/);
  expect(minted.prefix).toBe(minted.key.slice(0, 12));
  expect(minted.last4).toBe(minted.key.slice(-4));
  expect(minted.hash).toBe(createHash("sha256").update(minted.key).digest("hex"));
  expect(hashSecret(minted.key)).toBe(minted.hash);
  expect(checkApiKeyFormat(minted.key)).toBe(true);
  expect(mintApiKey().key).not.toBe(minted.key);
});

test("finds every single wrong character in an API key without the database", () => {
  const { key } = mintApiKey();
  for (let index = 0; index < key.length; index++) {
    const wrong = key[index] === "x" ? "y" : "x";
    expect(checkApiKeyFormat(key.slice(0, index) + wrong + key.slice(index + 1))).toBe(false);
  }
  for (const other of [
    "",
    "mw_live_",
    `${key}a`,
    `${key}\n`,
    ` ${key}`,
    key.slice(0, -1),
    key.toUpperCase(),
  ]) {
    expect(checkApiKeyFormat(other)).toBe(false);
  }
});

test("the check characters are CRC32 of the random part in base62, so that a scanner can compute them", () => {
  expect(Bun.hash.crc32("123456789")).toBe(0xcbf43926); // the check value of CRC-32/ISO-HDLC
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const { key } = mintApiKey();
  const value = Array.from(key.slice(-6)).reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
  expect(value).toBe(Bun.hash.crc32(key.slice(8, 48)));
});

test("draws every character of an alphabet about equally often", () => {
  const drawn = randomToken(93_000, ADDRESS_TOKEN_ALPHABET);
  expect(drawn).toHaveLength(93_000);
  const counts = new Map<string, number>();
  for (const char of drawn) {
    counts.set(char, (counts.get(char) ?? 0) + 1);
  }
  expect(counts.size).toBe(ADDRESS_TOKEN_ALPHABET.length);
  // 3,000 expected; eight standard deviations are 430. Taking a byte modulo 31 would be 12 % off for some.
  const expected = drawn.length / ADDRESS_TOKEN_ALPHABET.length;
  for (const count of counts.values()) {
    expect(Math.abs(count - expected)).toBeLessThan(430);
  }
  expect(randomToken(0, "ab")).toBe("");
});

test("the address alphabet has no letter that can be taken for another", () => {
  expect(ADDRESS_TOKEN_ALPHABET).toHaveLength(31);
  for (const char of "iIlLoO01") {
    expect(ADDRESS_TOKEN_ALPHABET.includes(char)).toBe(false);
  }
});

test("compares bytes and texts, and never takes a prefix for the whole", () => {
  expect(equalBytes("abc", Buffer.from("abc"))).toBe(true);
  expect(equalBytes("abc", "abd")).toBe(false);
  expect(equalBytes("abc", "ab")).toBe(false);
  expect(equalBytes("", "")).toBe(true);
});

test("writes base32 as RFC 4648 does, in lower case and cut to length", () => {
  expect(base32Token(Buffer.from("fooba"), 8)).toBe("mzxw6ytb"); // RFC 4648 §10
  expect(base32Token(Buffer.from("fooba"), 5)).toBe("mzxw6");
  expect(base32Token(Buffer.alloc(32, 255), 20)).toBe("7".repeat(20));
});
