import { replaceEach } from "../lib/replace-each.ts";
import { headOf } from "../lib/text-length.ts";
import type { McpServer } from "./mcp.ts";

/** Shorter tokens may occur in any text by chance. */
const MIN_TOKEN_CHARS = 8;
/** Shorter values of headers and variables are mostly no secrets, such as the name of an application. */
const MIN_VALUE_CHARS = 16;
/** Paths, and URLs without a password, are no secrets. */
const PUBLIC_VALUE = /^([./~]|https?:\/\/[^@]*$)/;
const HIDDEN = "[key]";

/** Returns the secrets that a server gets besides tokens. */
export function secretsOf({ transport }: McpServer): Set<string> {
  const values = Object.values(transport.kind === "http" ? transport.headers : transport.env);
  const parts = values.flatMap((value) => [value, value.split(" ").at(-1) ?? ""]);
  return new Set(parts.filter((value) => value.length >= MIN_VALUE_CHARS && !PUBLIC_VALUE.test(value)));
}

export function addSecret(secrets: Set<string>, token: string): void {
  if (token.length >= MIN_TOKEN_CHARS) secrets.add(token);
}

/** Returns the beginning of a server's text as `hideSecrets` does; what is beyond it is not looked through. */
export function headWithoutSecrets(text: string, secrets: Iterable<string>, max_chars: number): string {
  if (text.length <= max_chars) return hideSecrets(text, secrets);
  const longest = Math.max(0, ...[...secrets].flatMap(formsOf).map(({ length }) => length));
  const clean = hideSecrets(headOf(text, max_chars + 2 * longest), secrets);
  // A secret that the cut has parted is in the last characters at the most.
  return headOf(clean.slice(0, clean.length - longest), max_chars);
}

/** Returns a server's text without the secrets it repeats, as they are or encoded. */
export function hideSecrets(text: string, secrets: Iterable<string>): string {
  return replaceEach(text, [...secrets].flatMap(formsOf), HIDDEN);
}

function formsOf(secret: string): string[] {
  const encoded = Buffer.from(secret).toString("base64");
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), encoded];
}
