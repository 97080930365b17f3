import { hasMoreParts } from "../../lib/json-depth.ts";

const HIDDEN = "[hidden]";
const SECRET_NAME =
  /pass(word|phrase|wd)|secret|token|api[-_]?key|authorization|credential|private[-_]?key|cookie/i;
/** Forms of keys and tokens of well-known services. */
const SECRET_TEXT = new RegExp(
  [
    String.raw`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`,
    String.raw`\bgh[pousr]_[A-Za-z0-9]{20,}`,
    String.raw`\bgithub_pat_[A-Za-z0-9_]{20,}`,
    String.raw`\bglpat-[A-Za-z0-9_-]{16,}`,
    String.raw`\b(?:secret|ntn)_[A-Za-z0-9]{20,}`,
    String.raw`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,
    String.raw`\bya29\.[A-Za-z0-9_-]{20,}`,
    String.raw`\bAIza[A-Za-z0-9_-]{30,}`,
    String.raw`\bAKIA[0-9A-Z]{16}\b`,
    // Not from inside such a run, or a text of many beginnings would take quadratic time.
    String.raw`(?<![\w-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}`,
    String.raw`\bmw_live_[A-Za-z0-9]{20,}`,
    String.raw`\bwhsec_[A-Za-z0-9+/=]{20,}`,
    String.raw`\bBearer\s+[A-Za-z0-9._~+/=-]{16,}`,
    String.raw`\bAuthorization:\s{0,10}Basic\s{1,10}[A-Za-z0-9+/=]{4,}`,
    // In a URL: a password, and parameters named like secrets.
    String.raw`(?<=:\/\/[^\s/:@]{0,100}:)[^\s/@]{1,200}(?=@)`,
    String.raw`(?<=[?&](?:api[-_]?key|key|token|access_token|auth|secret|client_secret|password|sig|signature)=)[^\s&#"'<>]{4,}`,
  ].join("|"),
  "g",
);
const PRIVATE_KEY =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,4000}?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const MAX_DEPTH = 20;
/** Characters of a text that are searched: nothing behind them is ever shown. */
const MAX_READ_CHARS = 8_192;
const MAX_READ_IN_ALL_CHARS = 65_536;
/** Limit of parts: more take more space than is shown, however short they are cut. */
const MAX_SHOWN_PARTS = 2_048;
const MAX_ARGUMENT_BYTES = 2_048;
const MAX_EXCERPT_BYTES = 1_024;
const SHORTER = [500, 100, 20];

/** Returns a text without the keys and tokens that can be recognized by their form. */
export function redactText(text: string): string {
  return text.replaceAll(PRIVATE_KEY, HIDDEN).replaceAll(SECRET_TEXT, HIDDEN);
}

/** Returns the beginning of a text for the activity page: at most 1 KB, without secrets. */
export function excerptOf(text: string): string {
  const clean = redactText(text.slice(0, MAX_READ_CHARS)).toWellFormed();
  const bytes = Buffer.from(clean);
  if (text.length <= MAX_READ_CHARS && bytes.byteLength <= MAX_EXCERPT_BYTES) return clean;
  // A character that was cut in two is left out.
  const head = new TextDecoder().decode(bytes.subarray(0, MAX_EXCERPT_BYTES - 3), { stream: true });
  return `${head}…`;
}

/** Returns the arguments of a call for the activity page: at most 2 KB, without secrets. */
export function redactArguments(args: Record<string, unknown>): Record<string, unknown> {
  const text = JSON.stringify(args);
  if (hasMoreParts(text, MAX_SHOWN_PARTS)) return unshown(text);
  const clean = redact(args, { left: MAX_READ_IN_ALL_CHARS }) as Record<string, unknown>;
  for (const max_chars of [Infinity, ...SHORTER]) {
    const shown = shorten(clean, max_chars) as Record<string, unknown>;
    if (Buffer.byteLength(JSON.stringify(shown)) <= MAX_ARGUMENT_BYTES) return shown;
  }
  return unshown(text);
}

function unshown(args: string): Record<string, unknown> {
  return { "…": `${args.length} characters of arguments` };
}

/** How many characters may still be read; text behind them would not be shown anyway. */
interface Budget {
  left: number;
}

/** Returns a value without secrets. `secret` is true below a member whose name says that it holds one. */
function redact(value: unknown, budget: Budget, secret = false, depth = 0): unknown {
  if (typeof value === "string") return secret ? HIDDEN : redactHead(value, budget);
  if (typeof value === "number") return secret ? HIDDEN : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.map((item) => redact(item, budget, secret, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      redactHead(name, budget),
      redact(item, budget, secret || isSecret(name, item), depth + 1),
    ]),
  );
}

/** Returns whether a member is secret by its name. Numbers of tokens (`max_tokens`) are not. */
function isSecret(name: string, value: unknown): boolean {
  return SECRET_NAME.test(name) && !(typeof value === "number" && /tokens/i.test(name));
}

/** Redacts the beginning of a text and keeps its length, which is used to say how much is not shown. */
function redactHead(text: string, budget: Budget): string {
  const read = Math.min(text.length, MAX_READ_CHARS);
  if (read > budget.left) return "…".repeat(text.length);
  budget.left -= read;
  return redactText(text.slice(0, read)) + "…".repeat(text.length - read);
}

function shorten(value: unknown, max_chars: number): unknown {
  if (typeof value === "string")
    return value.length > max_chars ? `${value.slice(0, max_chars)}… (${value.length} characters)` : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shorten(item, max_chars));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shorten(item, max_chars)]));
}
