import mammoth from "mammoth";
import { readableHtml } from "../trust/own-words/reply-text.ts";
import { counted, type Extract } from "./reading.ts";
import { plainWords, type ShownXml, withoutHiddenRuns } from "./word-xml.ts";
import { checkZip, unpackEntry } from "./zip.ts";

const OPTIONS = {
  // Remarks in the margin are words of the document too.
  styleMap: ["comment-reference => sup"],
  includeEmbeddedStyleMap: false,
  externalFileAccess: false,
  convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: "" })),
};

/** Several, as the first page and even pages may have their own. */
const MARGIN = /^word\/(header|footer)\d*\.xml$/;

interface Parts {
  names: string[];
  read(name: string): string;
  /** Runs of text that were taken out of the parts read so far. */
  hidden(): number;
}

/** The text of a Word document with its headings, lists, tables, notes and comments; headers and footers come last. */
export async function readDocx(bytes: Uint8Array): Promise<Extract> {
  const parts = shownParts(bytes);
  const { value } = await mammoth.convertToHtml(inputOf(parts), OPTIONS);
  const { text } = readableHtml(marked(value));
  const margins = marginsOf(parts);
  const hidden = parts.hidden();
  return {
    text: margins === "" ? text : `${text}\n\n[Headers and footers]\n${margins}`,
    ...(hidden > 0 && { partly: `${counted(hidden, "hidden part was", "hidden parts were")} taken out` }),
  };
}

function shownParts(bytes: Uint8Array): Parts {
  const entries = new Map(checkZip(bytes).map((entry) => [entry.name, entry]));
  const shown = new Map<string, ShownXml>();
  return {
    names: [...entries.keys()],
    read: (name) => {
      const entry = entries.get(name);
      if (entry === undefined) throw new Error(`There is no part ${name}.`);
      const part = shown.get(name) ?? withoutHiddenRuns(new TextDecoder().decode(unpackEntry(bytes, entry)));
      shown.set(name, part);
      return part.xml;
    },
    hidden: () => shown.values().reduce((sum, part) => sum + part.hidden, 0),
  };
}

/** What the library makes of an archive itself, and takes as well; its types do not say so. */
function inputOf(parts: Parts): { buffer: Buffer } {
  const file = {
    exists: (name: string) => parts.names.includes(name),
    read: async (name: string) => parts.read(name),
  };
  return { file } as unknown as { buffer: Buffer };
}

function marginsOf(parts: Parts): string {
  const texts = parts.names.filter((name) => MARGIN.test(name)).map((name) => plainWords(parts.read(name)));
  return [...new Set(texts)].filter(Boolean).join("\n");
}

/** Puts signs for what plain text would lose into HTML that mammoth wrote, which is always built the same way. */
function marked(html: string): string {
  return html
    .replaceAll(/<h([1-6])>/g, (tag, level) => `${tag}${"#".repeat(Number(level))} `)
    .replaceAll(/<(t[dh])[^<>]*>(?:<p>)?/g, "<$1>")
    .replaceAll(/(?:<\/p>)?<\/(t[dh])>/g, "</$1>")
    .replaceAll(/<\/t[dh]><t[dh]>/g, " | ");
}
