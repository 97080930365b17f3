import { writeHtml } from "./html-writer.ts";
import { LOOK, QUIET_CLASS } from "./look.ts";
import { escapeHtml, type LinkGuard, noteOf, parseMarkdown } from "./markdown.ts";
import { MAX_PICTURE_PX, type Picture } from "./pictures.ts";
import { writeText } from "./text-writer.ts";

/** The text of a mail for its HTML and its plain part. */
export interface Written {
  /** HTML for the body of a page. */
  html: string;
  text: string;
  /** The complete Markdown, where a part shows only its beginning. */
  whole: string | null;
}

const TEXT_CHARS = 100_000;
/** Limits in bytes of HTML: Gmail shows the first 102 KB of a page. Frame, notes and pictures take the rest. */
const ANSWER_BYTES = 78_000;
const NOTES_BYTES = 14_000;
const GOES_ON = "The answer goes on in the attached file reply.md.";
const SHORTENED = "This is the beginning of the answer. The whole of it is in the attached file reply.md.";
const MORE_NOTES = "The rest of these notes is in the text part of this mail.";
const NO_WORDS = "*The answer has no text.*";

interface Writing {
  guard?: LinkGuard;
  /** Pictures attached to the mail. */
  pictures?: Picture[];
  /** Whether this server wrote it, and not a model. */
  own?: boolean;
}

/** Writes an answer, or a letter, from its Markdown. */
export function written(markdown: string, { guard, pictures = [], own = false }: Writing = {}): Written {
  const { source, shown, is_long } = beginningOf(markdown);
  const tokens = parseMarkdown(shown === "" ? NO_WORDS : shown, { guard, pictures });
  const used = new Set(
    tokens.flatMap(({ children }) => (children ?? []).map((token) => noteOf(token).picture)),
  );
  const others = pictures.filter((picture) => !used.has(picture));
  const { html, cut } = writeHtml(tokens, { room: ANSWER_BYTES, own });
  const end = cut ? SHORTENED : is_long ? GOES_ON : "";
  return {
    html: html + (end === "" ? "" : paragraph(`<em>${end}</em>`)) + others.map(pictureHtml).join(""),
    text: joined([
      writeText(tokens, guard),
      is_long ? GOES_ON : "",
      ...others.map(({ filename }) => `[image: ${filename}]`),
    ]),
    whole: is_long || cut ? source : null,
  };
}

/** Writes the notes below an answer from Markdown: small, and without the look of code around whole sentences. */
export function writtenNotes(markdown: string, guard?: LinkGuard): Written {
  const tokens = parseMarkdown(plainLines(markdown), { guard });
  const { html, cut } = writeHtml(tokens, { room: NOTES_BYTES, own: true });
  return { html: cut ? html + paragraph(MORE_NOTES) : html, text: writeText(tokens, guard), whole: null };
}

/** Writes Markdown that takes too long to read as its bare characters. */
export function writtenPlain(markdown: string): Written {
  const { source, shown, is_long } = beginningOf(markdown);
  const lines = linesOf(shown);
  const cut = Buffer.byteLength(lines) > ANSWER_BYTES;
  return {
    html:
      // An escaped character in UTF-8 takes seven bytes at most.
      paragraph(cut ? linesOf(shown.slice(0, ANSWER_BYTES / 7).toWellFormed()) : lines) +
      (cut ? paragraph(`<em>${SHORTENED}</em>`) : ""),
    text: is_long ? joined([shown, GOES_ON]) : shown,
    whole: is_long || cut ? source : null,
  };
}

function beginningOf(markdown: string): { source: string; shown: string; is_long: boolean } {
  const source = plainLines(markdown);
  const is_long = source.length > TEXT_CHARS;
  const shown = is_long ? source.slice(0, TEXT_CHARS).replace(/[\uD800-\uDBFF]$/, "") : source;
  return { source, shown, is_long };
}

function plainLines(markdown: string): string {
  return markdown.toWellFormed().replaceAll(/\r\n?/g, "\n").replaceAll("\0", "").trim();
}

function joined(texts: string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

function linesOf(text: string): string {
  return escapeHtml(text).replaceAll("\n", "<br />\n");
}

function paragraph(html: string): string {
  return `<p style="${LOOK.p}">${html}</p>\n`;
}

function pictureHtml({ filename, cid, width }: Picture): string {
  const name = escapeHtml(filename);
  const shown = `<img src="cid:${cid}" alt="${name}" width="${Math.min(width, MAX_PICTURE_PX)}" style="${LOOK.img}" />`;
  return paragraph(`${shown}<br />\n<span class="${QUIET_CLASS}" style="${LOOK.caption}">${name}</span>`);
}
