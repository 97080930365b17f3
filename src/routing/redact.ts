const HIDDEN = "[hidden]";
const SECRET_NAME =
  /pass(word|phrase|wd)|secret|token|api[-_]?key|authorization|credential|private[-_]?key|cookie/i;
/** Keys and tokens as their makers write them. */
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
    String.raw`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}`,
    String.raw`\bmw_live_[A-Za-z0-9]{20,}`,
    String.raw`\bwhsec_[A-Za-z0-9+/=]{20,}`,
    String.raw`\bBearer\s+[A-Za-z0-9._~+/=-]{16,}`,
    String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,4000}?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
  ].join("|"),
  "g",
);
const MAX_DEPTH = 20;
const MAX_ARGUMENT_BYTES = 2_048;
const SHORTER = [500, 100, 20];

/** A text without the keys and tokens that can be told by their form. */
export function redactText(text: string): string {
  return text.replaceAll(SECRET_TEXT, HIDDEN);
}

/** Arguments of a call for the activity: at most 2 KB, without secrets. */
export function redactArguments(args: Record<string, unknown>): Record<string, unknown> {
  const clean = redact(args) as Record<string, unknown>;
  for (const max_chars of [Infinity, ...SHORTER]) {
    const shown = shorten(clean, max_chars) as Record<string, unknown>;
    if (Buffer.byteLength(JSON.stringify(shown)) <= MAX_ARGUMENT_BYTES) return shown;
  }
  return { "…": `${JSON.stringify(clean).length} characters of arguments` };
}

function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      redactText(name),
      SECRET_NAME.test(name) && typeof item === "string" ? HIDDEN : redact(item, depth + 1),
    ]),
  );
}

function shorten(value: unknown, max_chars: number): unknown {
  if (typeof value === "string")
    return value.length > max_chars ? `${value.slice(0, max_chars)}… (${value.length} characters)` : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shorten(item, max_chars));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shorten(item, max_chars)]));
}
