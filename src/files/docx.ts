import mammoth from "mammoth";
import { readableHtml } from "../mail/reply-text.ts";
import type { Extract } from "./reading.ts";
import { checkZip } from "./zip.ts";

const OPTIONS = {
  // Remarks in the margin are words of the document too.
  styleMap: ["comment-reference => sup"],
  includeEmbeddedStyleMap: false,
  externalFileAccess: false,
  convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: "" })),
};

/** The text of a Word document with its headings, lists, tables, notes and comments. */
export async function readDocx(bytes: Uint8Array): Promise<Extract> {
  checkZip(bytes);
  const { value } = await mammoth.convertToHtml({ buffer: Buffer.from(bytes) }, OPTIONS);
  return { text: readableHtml(marked(value)).text };
}

/** Puts signs for what plain text would lose into HTML that mammoth wrote, which is always built the same way. */
function marked(html: string): string {
  return html
    .replaceAll(/<h([1-6])>/g, (tag, level) => `${tag}${"#".repeat(Number(level))} `)
    .replaceAll(/<(t[dh])[^>]*>(?:<p>)?/g, "<$1>")
    .replaceAll(/(?:<\/p>)?<\/(t[dh])>/g, "</$1>")
    .replaceAll(/<\/t[dh]><t[dh]>/g, " | ");
}
