import type { ModelImage } from "../ai/llm-messages.ts";
import type { App } from "../app.ts";
import type { ReadFor } from "../files/reader.ts";
import { counted, type FileReading, type FileToRead, notRead } from "../files/reading.ts";
import { shownName, shownType } from "../files/shown-name.ts";
import type { StepDraft } from "./steps.ts";
import { KB, MB } from "../lib/sizes.ts";

/** More than these are not shown to a model. */
const MAX_IMAGES = 8;

export interface NamedImage extends ModelImage {
  filename: string;
}

/** What the files of a message are to a run. All of it is untrusted. */
export interface Material {
  /** The text of each file that is text or was turned into it, under its name. */
  texts: string[];
  /** One line for each file, read or not: its name, type and size, and what was read of it. */
  manifest: string[];
  images: NamedImage[];
  /** Sentences about what was read in part; of what was not read at all a step says so. */
  warnings: string[];
  extracted: StepDraft[];
}

export async function readMaterial(
  app: App,
  files: FileToRead[],
  { signal, from }: { signal: AbortSignal; from: ReadFor },
): Promise<Material> {
  const readings = limitImages(await app.files.read(files, signal, from));
  return {
    texts: readings
      .filter(({ text }) => text !== "")
      .map(({ filename, text }) => `File ${filename}:\n${text}`),
    manifest: readings.map((reading) => line(reading, reading.summary || "not read")),
    images: readings.flatMap(({ filename, image }) => (image ? [{ filename, ...image }] : [])),
    warnings: readings
      .filter(({ summary }) => summary !== "")
      .map(({ note }) => note)
      .filter(Boolean),
    extracted: readings.map(toStep),
  };
}

/** The manifest's line of a mail in a mail, whose text is part of the text of the mail around it. */
export function lineOfMail({ filename, content_type, bytes }: FileToRead): string {
  const about = {
    filename: shownName(filename),
    content_type: shownType(content_type),
    size: bytes.byteLength,
  };
  return line(about, "its text is part of the mail's text");
}

function limitImages(readings: FileReading[]): FileReading[] {
  let left = MAX_IMAGES;
  return readings.map(({ image, ...reading }) => {
    if (image === undefined) return reading;
    if (left > 0) {
      left -= 1;
      return { ...reading, image };
    }
    const note = notRead(reading.filename, `(only ${MAX_IMAGES} pictures of a message are looked at)`);
    return { ...reading, note, summary: "" };
  });
}

function line(
  { filename, content_type, size }: Pick<FileReading, "filename" | "content_type" | "size">,
  what: string,
): string {
  return `${filename} (${content_type}, ${sizeOf(size)}: ${what})`;
}

function sizeOf(bytes: number): string {
  if (bytes < KB) return counted(bytes, "byte");
  return bytes < MB ? `${Math.round(bytes / KB)} KB` : `${(bytes / MB).toFixed(1)} MB`;
}

function toStep({ filename, summary, note }: FileReading): StepDraft {
  const step = { type: "extract" as const, name: filename };
  return summary === "" ? { ...step, status: "error", output: note } : { ...step, output: summary };
}
