import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";

const MAX_NAME_CHARS = 255;
const MAX_ENDING_CHARS = 16;

const ENDINGS: Record<string, string> = {
  "message/rfc822": "eml",
  "text/calendar": "ics",
  "text/plain": "txt",
  "text/html": "html",
  "text/csv": "csv",
  "text/vcard": "vcf",
  "application/pdf": "pdf",
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
};

/**
 * Returns the last part of the path that was sent, without characters that a file system or a screen could misread;
 * never empty.
 */
export function safeFilename(sent: string, contentType: string, number: number): string {
  const name = stripHiddenCharacters(sent.split(/[/\\]/).at(-1) ?? "")
    .text.replace(/[\n\t<>:"|?*]/g, "_")
    .replace(/^[.\s]+/, "")
    .trim();
  if (name === "") return `attachment-${number}.${ENDINGS[contentType] ?? "bin"}`;
  if (name.length <= MAX_NAME_CHARS) return name.toWellFormed();
  const dot = name.lastIndexOf(".");
  const ending = name.length - dot <= MAX_ENDING_CHARS ? name.slice(dot) : "";
  return (name.slice(0, MAX_NAME_CHARS - ending.length) + ending).toWellFormed();
}
