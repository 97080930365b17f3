import type { ToolFile } from "../trust/guard/tool.ts";
import { safeFilename } from "../trust/shown/attachment-name.ts";
import { endingOf, type FileType, MEDIA_TYPES, TEXT_TYPES } from "./file-types.ts";
import { linkGuard, type Trust } from "../trust/shown/links.ts";
import { MB } from "../lib/sizes.ts";

export const MAX_MADE_FILES = 10;
export const MAX_TEXT_BYTES = MB;
const MAX_MADE_BYTES = 10 * MB;
const MAX_NAME_CHARS = 100;
/**
 * The trust for a file that a tool gives out: its text is its maker's, whoever asked for it, so no address in it is
 * known.
 */
const NOBODYS: Trust = { tainted: true, trusted_text: "", material: "" };

type Made = ToolFile | { refusal: string };
type MakeFile = (file: Parameters<typeof textFile>[0], trust: Trust) => Made | Promise<Made>;

/** Adds files of tools to those of the run, as far as there is room; returns sentences about what was left out. */
export async function keepMade(made: ToolFile[], files: ToolFile[], make: MakeFile): Promise<string[]> {
  const ready: Made[] = [];
  for (const file of files) ready.push(await readyFile(file, make));
  return ready.flatMap((file) => ("refusal" in file ? [file.refusal] : addFile(made, file)));
}

function readyFile(file: ToolFile, make: MakeFile): Made | Promise<Made> {
  const { name, ending } = namesOf(file);
  if (MEDIA_TYPES.has(ending))
    return { ...file, filename: name, content_type: MEDIA_TYPES.get(ending) ?? "" };
  if (!TEXT_TYPES.has(ending))
    return { refusal: `${name} was left out: files of this type are not passed on.` };
  if (file.bytes.byteLength > MAX_TEXT_BYTES) return { refusal: tooLong(name) };
  const text = new TextDecoder().decode(file.bytes);
  return make({ filename: file.filename, content_type: file.content_type, text }, NOBODYS);
}

/** Adds a file under a name of its own; returns a sentence if there is no room for it. */
export function addFile(made: ToolFile[], file: ToolFile): string[] {
  if (made.length >= MAX_MADE_FILES)
    return [`${file.filename} was left out: a run makes at most ${MAX_MADE_FILES} files.`];
  const bytes = made.reduce((sum, other) => sum + other.bytes.byteLength, file.bytes.byteLength);
  if (bytes > MAX_MADE_BYTES)
    return [
      `${file.filename} was left out: the files of a run have at most ${MAX_MADE_BYTES / MB} MB together.`,
    ];
  made.push(namedApart(made, file));
  return [];
}

/**
 * A file with a name that no other has: "report.csv", then "report-2.csv". Upper and lower case count as the same, as
 * they do in many file systems.
 */
export function namedApart(made: ToolFile[], file: ToolFile): ToolFile {
  const taken = new Set(made.map(({ filename }) => filename.toLowerCase()));
  const [stem, ending] = parts(file.filename);
  let { filename } = file;
  for (let number = 2; taken.has(filename.toLowerCase()); number += 1) {
    const mark = `-${number}`;
    filename = short(stem.slice(0, MAX_NAME_CHARS - ending.length - 1 - mark.length) + mark, ending);
  }
  return { ...file, filename };
}

/**
 * A file of text under a safe name. In a run that has read what others wrote, nothing in the file acts when it is
 * opened.
 */
export function textFile(
  file: { filename: string; content_type?: string; text: string },
  trust: Trust,
): Made {
  const { name, ending } = namesOf(file);
  const type = TEXT_TYPES.get(ending);
  if (type === undefined) {
    const usual = [...TEXT_TYPES.keys()].slice(0, 20).join(", ");
    return { refusal: `${name} was not made: only files of text can be, with an ending such as ${usual}.` };
  }
  // This is checked before the text is read: in UTF-8 it has at least as many bytes as characters.
  if (file.text.length > MAX_TEXT_BYTES) return { refusal: tooLong(name) };
  const text = trust.tainted && type.harmless ? type.harmless(file.text, linkGuard(trust)) : file.text;
  if (text === null) return { refusal: `${name} was not made: something in it could act when it is opened.` };
  const bytes = Buffer.from(text.toWellFormed());
  if (bytes.byteLength > MAX_TEXT_BYTES) return { refusal: tooLong(name) };
  return { filename: trust.tainted ? inertName(name, type) : name, content_type: type.content_type, bytes };
}

function tooLong(name: string): string {
  return `${name} was left out: a file of text has at most ${MAX_TEXT_BYTES / MB} MB.`;
}

function namesOf({ filename, content_type = "" }: { filename: string; content_type?: string }): {
  name: string;
  ending: string;
} {
  // Some systems ignore dots and spaces at the end of a name, and then see another ending.
  const safe = safeFilename(filename, content_type, 1).replace(/(?<![.\s])[.\s]+$/, "");
  const [stem, own] = parts(safe);
  const ending = own.toLowerCase();
  const usual = TEXT_TYPES.has(ending) || MEDIA_TYPES.has(ending) ? undefined : endingOf(content_type);
  return usual === undefined
    ? { name: short(stem, own), ending }
    : { name: short(safe, usual), ending: usual };
}

function parts(name: string): [stem: string, ending: string] {
  const dot = name.lastIndexOf(".");
  return dot <= 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1)];
}

function short(stem: string, ending: string): string {
  const tail = ending === "" ? "" : `.${ending.slice(0, 20)}`;
  return `${stem.slice(0, MAX_NAME_CHARS - tail.length).replace(/[\uD800-\uDBFF]$/, "")}${tail}`;
}

/**
 * The name under which a file does not run when it is opened: a program gets the ending of a text, to be read before
 * anybody runs it.
 */
function inertName(name: string, { program }: FileType): string {
  return program === true ? short(name, "txt") : name;
}
