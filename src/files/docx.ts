import mammoth from "mammoth";
import { readableHtml } from "../trust/own-words/reply-text.ts";
import { withShortBlanks } from "../lib/short-blanks.ts";
import { counted, DAMAGED, type Extract, Unreadable } from "./reading.ts";
import { plainWords, type ShownXml, withoutHiddenRuns } from "./word-xml.ts";
import { checkZip, unpackEntry } from "./zip.ts";

const OPTIONS = {
  // Comments in the margin are text of the document too.
  styleMap: ["comment-reference => sup"],
  includeEmbeddedStyleMap: false,
  externalFileAccess: false,
  convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: "" })),
};

/** Parts with headers and footers; there may be several, for the first page, odd and even pages. */
const MARGIN = /^word\/(header|footer)\d*\.xml$/;

interface Parts {
  names: string[];
  read(name: string): string;
  /** Returns how many hidden runs of text were removed from the parts read so far. */
  hidden(): number;
}

/**
 * Returns the text of a Word document with its headings, lists, tables, notes and comments; headers and footers come
 * last.
 */
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
      const part = shown.get(name) ?? withoutHiddenRuns(textOf(unpackEntry(bytes, entry)));
      shown.set(name, part);
      return part.xml;
    },
    hidden: () => shown.values().reduce((sum, part) => sum + part.hidden, 0),
  };
}

/** Returns the XML of a part. Throws `Unreadable` for declarations, which no Word document has, and which define texts to repeat. */
function textOf(part: Uint8Array): string {
  const xml = new TextDecoder().decode(part);
  if (/<!(?:DOCTYPE|ENTITY)/i.test(xml)) throw new Unreadable(DAMAGED);
  return withShortBlanks(xml);
}

/**
 * Returns parts in the form that mammoth builds from an archive itself. It accepts that as input as well, which its
 * types do not say.
 */
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

/**
 * Adds characters for formatting that plain text would lose to HTML that mammoth wrote. That HTML is regular enough for
 * patterns.
 */
function marked(html: string): string {
  return html
    .replaceAll(/<h([1-6])>/g, (tag, level) => `${tag}${"#".repeat(Number(level))} `)
    .replaceAll(/<(t[dh])[^<>]*>(?:<p>)?/g, "<$1>")
    .replaceAll(/(?:<\/p>)?<\/(t[dh])>/g, "</$1>")
    .replaceAll(/<\/t[dh]><t[dh]>/g, " | ");
}
