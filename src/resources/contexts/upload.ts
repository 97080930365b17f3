import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { invalid } from "../../errors.ts";
import { oneLine } from "../../lib/one-line.ts";
import { type ContextView, createContext, MAX_BODY_BYTES, MAX_TITLE_CHARS } from "./contexts.ts";
import type { Upload } from "./shapes.ts";

const UNTITLED = "Untitled";

/** Makes a context of a Markdown file: its first heading, else its name, is the title, all of it the body. */
export async function uploadContext(app: App, caller: Caller, upload: Upload): Promise<ContextView> {
  const body = await readText(upload.file);
  const title = headingTitle(body) || fileTitle(upload.file.name ?? "") || UNTITLED;
  const { kind = "instruction", inbox_ids } = upload;
  const named = inbox_ids === undefined ? null : [inbox_ids].flat();
  return createContext(app, caller, { title, body, kind, inbox_ids: named });
}

async function readText(file: Blob): Promise<string> {
  if (file.size > MAX_BODY_BYTES)
    throw invalid("body.file", "file_too_large", "The file is larger than 256 KB (262,144 bytes).");
  const text = decodeUtf8(await file.arrayBuffer());
  if (text === undefined)
    throw invalid(
      "body.file",
      "file_not_utf8",
      "The file is not UTF-8 text. Save it with the encoding UTF-8 and send it again.",
    );
  if (text === "") throw invalid("body.file", "missing", "The file is empty.");
  return text;
}

/** The text of UTF-8 without its byte order mark; undefined for bytes that are none. */
function decodeUtf8(bytes: ArrayBuffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The first ATX heading of level one (CommonMark §4.2) with words in it and outside of fenced code (§4.5). */
function headingTitle(markdown: string): string | undefined {
  let fence: string | undefined;
  for (const line of markdown.split(/\r\n|\r|\n/)) {
    if (fence === undefined) {
      const title = /^ {0,3}#(?=[ \t]|$)/.test(line) ? cutTitle(headingText(line)) : "";
      if (title !== "") return title;
      fence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1];
    } else if (closesFence(line, fence)) {
      fence = undefined;
    }
  }
  return undefined;
}

/** The words of a heading, between its opening and closing sequence of `#`. */
function headingText(line: string): string {
  const text = line.slice(line.indexOf("#") + 1).trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  const closed = end < text.length && /^[ \t]$/.test(text[end - 1] ?? "");
  return closed ? text.slice(0, end) : text;
}

function closesFence(line: string, fence: string): boolean {
  const mark = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return mark !== undefined && mark.length >= fence.length && mark[0] === fence[0];
}

/** The last part of a path, without its extension. */
function fileTitle(path: string): string {
  const name = path.split(/[/\\]/).at(-1) ?? "";
  const dot = name.lastIndexOf(".");
  return cutTitle(dot === -1 ? name : name.slice(0, dot));
}

function cutTitle(text: string): string {
  return Array.from(oneLine(text)).slice(0, MAX_TITLE_CHARS).join("").trimEnd();
}
