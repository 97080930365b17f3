import { urlOf } from "../lib/web-address.ts";
import { member } from "../lib/foreign-json.ts";
import { safeFilename } from "../trust/shown/attachment-name.ts";
import { headWithoutSecrets, hideSecrets } from "./mcp-secrets.ts";
import type { ToolFile, ToolOutcome } from "../trust/guard/tool.ts";

const MAX_TEXT_CHARS = 200_000;
const MAX_FILES = 10;
/** How many parts are read; each becomes a line. */
const MAX_PARTS = 1_000;
const MEDIA_TYPE = /^[a-z0-9][a-z0-9.+-]{0,63}\/[a-z0-9][a-z0-9.+-]{0,127}$/;
const ANY_TYPE = "application/octet-stream";
/** The member of each kind of part that holds its content. */
const WORDS: Record<string, string> = { text: "text", image: "data", audio: "data", resource_link: "uri" };
const ENDINGS: Record<string, string> = {
  "image/jpeg": "jpg",
  "image/svg+xml": "svg",
  "audio/mpeg": "mp3",
  "audio/x-wav": "wav",
};

/** Returns whether a result has the form of an MCP call result; the library has not checked it. */
export function isCallResult(result: unknown): boolean {
  const content = member(result, "content") ?? [];
  return Array.isArray(content) && content.slice(0, MAX_PARTS).every(isPart);
}

function isPart(part: unknown): boolean {
  const type = member(part, "type");
  const name = typeof type === "string" ? WORDS[type] : undefined;
  if (name !== undefined) return typeof member(part, name) === "string";
  const resource = member(part, "resource");
  return type === "resource" && ["text", "blob"].some((one) => typeof member(resource, one) === "string");
}

/**
 * Returns the result of a call as text for the model and files for the message. The limit on answers also limits files.
 */
export function outcomeOf(result: unknown, secrets: Set<string>): ToolOutcome {
  const taken: Taken = { files: [], secrets };
  const content = member(result, "content");
  const all: unknown[] = Array.isArray(content) ? content : [];
  const parts = all.slice(0, MAX_PARTS).map((part) => textOf(part, taken));
  const structured = member(result, "structuredContent");
  const has_text = parts.some(({ is_text }) => is_text);
  const lines = parts.map(({ line }) => line);
  if (!has_text && structured !== undefined) lines.push(JSON.stringify(structured));
  if (all.length > MAX_PARTS)
    lines.unshift(
      `(The answer has more than ${MAX_PARTS.toLocaleString("en")} parts: the other ${all.length - MAX_PARTS} were left out.)`,
    );
  const text = cut(lines.filter((line) => line !== "").join("\n"), secrets);
  return { ok: member(result, "isError") !== true, text: text || "(no output)", files: taken.files };
}

interface Taken {
  files: ToolFile[];
  secrets: Set<string>;
}

interface Part {
  line: string;
  /** Whether it is text for people, so that the data need not be shown as well. */
  is_text: boolean;
}

function textOf(part: unknown, taken: Taken): Part {
  const type = member(part, "type");
  if (type === "text") return { line: stringOf(part, "text"), is_text: true };
  if (type === "image" || type === "audio") return { line: takeMedia(part, type, taken), is_text: false };
  if (type === "resource_link") return { line: linkLine(part), is_text: false };
  const resource = member(part, "resource");
  if (typeof member(resource, "text") === "string")
    return { line: stringOf(resource, "text"), is_text: true };
  if (typeof member(resource, "blob") !== "string") return { line: "", is_text: false };
  const filename = lastStepOf(stringOf(resource, "uri"));
  return {
    line: takeFile(taken, { filename, part: resource, data: stringOf(resource, "blob") }),
    is_text: false,
  };
}

function takeMedia(part: unknown, type: string, taken: Taken): string {
  const media = mediaType(part);
  const ending = ENDINGS[media] ?? media.split("/")[1] ?? "bin";
  const count = taken.files.filter(({ filename }) => filename.startsWith(`${type}-`)).length + 1;
  return takeFile(taken, { filename: `${type}-${count}.${ending}`, part, data: stringOf(part, "data") });
}

/** Keeps a file, and returns a line that says so. */
function takeFile(
  { files, secrets }: Taken,
  given: { filename: string; part: unknown; data: string },
): string {
  const content_type = mediaType(given.part);
  const filename = safeFilename(hideSecrets(given.filename, secrets), content_type, files.length + 1);
  if (files.length === MAX_FILES)
    return `(${filename} was left out: there are more than ${MAX_FILES} files.)`;
  const bytes = Buffer.from(given.data, "base64");
  if ([...secrets].some((secret) => bytes.includes(secret)))
    return `(${filename} was left out: it repeats a secret of the connection.)`;
  files.push({ filename, content_type, bytes: new Uint8Array(bytes) });
  return `(File ${filename}, ${content_type}, ${bytes.byteLength} bytes.)`;
}

/** Returns a line about a link, which is never fetched. */
function linkLine(part: unknown): string {
  return [stringOf(part, "name"), stringOf(part, "uri"), stringOf(part, "description")]
    .filter(Boolean)
    .join(" - ");
}

function mediaType(part: unknown): string {
  const type = stringOf(part, "mimeType").split(";")[0]?.trim().toLowerCase() ?? "";
  return MEDIA_TYPE.test(type) ? type : ANY_TYPE;
}

function lastStepOf(uri: string): string {
  const path = (urlOf(uri)?.pathname ?? uri).split(/[?#]/)[0] ?? "";
  const step = path.split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function cut(text: string, secrets: Iterable<string>): string {
  const head = headWithoutSecrets(text, secrets, MAX_TEXT_CHARS);
  if (text.length <= MAX_TEXT_CHARS) return head;
  const left_out = text.length - MAX_TEXT_CHARS;
  return `${head}\n(The answer goes on for ${left_out} more characters, which were cut off.)`;
}

function stringOf(value: unknown, name: string): string {
  const text = member(value, name);
  return typeof text === "string" ? text : "";
}
