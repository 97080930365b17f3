import { AppError } from "../errors.ts";
import { MAX_FILES, type SentFile, decodeFile } from "../files/sent-file.ts";
import { readJson } from "./json-text.ts";
import { sha256 } from "../lib/sha256.ts";

/** Texts are cut to one character more than their schemas allow, which is enough to refuse them for their length. */
const MAX_CONTENT_CHARS = 1_000_001;
const MAX_OTHER_CHARS = 20_001;

/** A parsed call. The data of each attachment is replaced by its hash, and the bytes are in `files`. */
export type ReadCall = { body: object; files: SentFile[] } | { refusal: string };

/** Reads the body of a call, with the files in it. */
export function readCall(bytes: Buffer): ReadCall {
  try {
    const { attachments, ...rest } = readJson(bytes.toString("utf8"));
    const files: SentFile[] = [];
    const list = Array.isArray(attachments) ? attachments.map((one) => withoutData(one, files)) : attachments;
    const body = attachments === undefined ? rest : { ...rest, attachments: list };
    return { body: shortened(body, "") as object, files };
  } catch (error) {
    if (error instanceof AppError) return { refusal: error.message };
    throw error;
  }
}

function withoutData(attachment: unknown, files: SentFile[]): unknown {
  if (typeof attachment !== "object" || attachment === null || !("data" in attachment)) return attachment;
  const { data } = attachment;
  // The schema refuses a call with more files.
  if (typeof data !== "string" || files.length >= MAX_FILES) return attachment;
  const file = decodeFile(data);
  files.push(file);
  return {
    ...attachment,
    data: "fault" in file ? "" : sha256(file.bytes, "hex"),
  };
}

function shortened(value: unknown, name: string): unknown {
  if (typeof value === "string")
    return value.slice(0, name === "content" ? MAX_CONTENT_CHARS : MAX_OTHER_CHARS);
  if (Array.isArray(value)) return value.map((item) => shortened(item, ""));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shortened(member, key)]));
}
