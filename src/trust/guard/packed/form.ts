import { readMimeValue } from "../../../mail/reading/mime-value.ts";
import type { Part, Reading } from "./part.ts";

/** The name of a first field. A URL with a query is not a form, nor is base64, which may end with such a sign. */
const FIRST_FIELD = /^[?&\s\uFEFF]*[\w.+%[\]$*~()-]+[=&](?![=\s]*$)/;
const NEXT_FIELD = /&[\w.+%[\]$*~()-]+=/;

/**
 * Reads the fields of a form in `application/x-www-form-urlencoded`. Configuration files look similar, but have no `&`.
 */
export function readForm(text: string, max_chars: number): Reading | undefined {
  if (!FIRST_FIELD.test(text)) return undefined;
  const words = text.trim();
  if (!NEXT_FIELD.test(words) && words.includes("\n")) return undefined;
  if (text.length > max_chars) return { parts: [], chars: text.length };
  const parts = [...new URLSearchParams(words)].flatMap(([name, value]): Part[] => [
    { key: "", value: name },
    { key: name, value },
  ]);
  return { parts, chars: text.length };
}

/** Reads the fields of a form in `multipart/form-data` (RFC 7578). */
export function readFormParts(text: string, max_chars: number): Reading | undefined {
  const lines = text.trimStart();
  if (!lines.startsWith("--")) return undefined;
  const boundary = /^--[^\s]+(?=[ \t]*\r?\n)/.exec(lines)?.[0];
  if (boundary === undefined || !/\ncontent-disposition[ \t]*:/i.test(lines)) return undefined;
  if (text.length > max_chars) return { parts: [], chars: text.length };
  return { parts: lines.split(boundary).slice(1).flatMap(fieldOf), chars: text.length };
}

/** Reads one field; its key is null where programs may read the name differently. */
function fieldOf(part: string): Part[] {
  const text = part.replaceAll("\r\n", "\n");
  const gap = text.indexOf("\n\n");
  const fields = text.slice(0, gap < 0 ? undefined : gap).replaceAll(/\n(?=[ \t])/g, "");
  const [, said = ""] = /^content-disposition[ \t]*:(.*)$/im.exec(fields) ?? [];
  const disposition = readMimeValue(said.trim())?.parameters;
  const names = [...(disposition?.values() ?? [])].map((value): Part => ({ key: "", value }));
  const value = gap < 0 ? "" : text.slice(gap + 2);
  return [...names, { key: disposition?.get("name") ?? "", value }];
}
