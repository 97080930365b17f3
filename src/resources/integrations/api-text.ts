import { member } from "../../lib/foreign-json.ts";
import { oneLine } from "../../lib/one-line.ts";
import { headOf } from "../../lib/text-length.ts";

export const MAX_LIST = 50;
const MAX_OUTPUT_CHARS = 50_000;
const MAX_LABEL_CHARS = 300;

/** A text for the model, cut if it is long, with a line that says so. */
export function capped(text: string): string {
  if (text.length <= MAX_OUTPUT_CHARS) return text;
  const shown = headOf(text, MAX_OUTPUT_CHARS);
  return `${shown}\n\n(Cut here: these are the first ${MAX_OUTPUT_CHARS} of ${text.length} characters.)`;
}

/** A member as text on one line; empty if it is neither text nor a number. */
export function label(value: unknown, ...names: string[]): string {
  let found = value;
  for (const name of names) found = member(found, name);
  if (typeof found !== "string" && typeof found !== "number") return "";
  const line = oneLine(String(found));
  return line.length > MAX_LABEL_CHARS ? `${line.slice(0, MAX_LABEL_CHARS - 1).toWellFormed()}…` : line;
}

/** A member as text that may have many lines. */
export function words(value: unknown, name: string): string {
  const found = member(value, name);
  return typeof found === "string" ? found.replaceAll("\r\n", "\n").trim() : "";
}

export function listIn(value: unknown, name?: string): unknown[] {
  const found = name === undefined ? value : member(value, name);
  return Array.isArray(found) ? found : [];
}

/** `1 row`, `2 rows` */
export function counted(count: number | string, noun: string): string {
  return `${count} ${noun}${String(count) === "1" ? "" : "s"}`;
}

/** The day of a member that is an ISO time. */
export function day(value: unknown, name: string): string {
  return label(value, name).slice(0, "2026-01-01".length);
}

/** The lines of a list, and a line about what is missing from it. `total` is null where only `more` is known. */
export function listed(
  heading: string,
  lines: string[],
  rest: { total: number | null; more: boolean },
): string {
  if (lines.length === 0) return "Nothing was found.";
  const missing = rest.total === null ? null : rest.total - lines.length;
  const is_more = missing === null ? rest.more : missing > 0;
  const more = `(Not shown: ${missing ?? "some"} more. Ask more narrowly to see them.)`;
  return [heading, ...lines, ...(is_more ? [more] : [])].join("\n");
}

/**
 * What the headers of a page say about the pages behind it: those of GitLab and Gitea have the count, GitHub's a link
 * (RFC 8288).
 */
export function restOf(headers: Headers): { total: number | null; more: boolean } {
  const total = headers.get("x-total") ?? headers.get("x-total-count") ?? "";
  return {
    total: /^\d{1,9}$/.test(total) ? Number(total) : null,
    more: /rel="?next"?/.test(headers.get("link") ?? ""),
  };
}
