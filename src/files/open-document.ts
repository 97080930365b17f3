import { Parser } from "htmlparser2";
import { type Extract, MAX_FILE_CHARS, Unreadable } from "./reading.ts";
import { checkZip, unpackEntry } from "./zip.ts";

/** Elements that end a line, and elements whose text is not shown (OpenDocument 1.3 part 3). */
const LINES = new Set(["text:p", "text:h", "text:line-break", "draw:page"]);
const UNSEEN = new Set([
  "text:tracked-changes",
  "office:forms",
  "office:automatic-styles",
  "svg:title",
  "svg:desc",
]);
const CELL = "table:table-cell";
const ROW = "table:table-row";
const BETWEEN_CELLS = " | ";
const MAX_SPACES = 100;
const MAX_LEVEL = 6;

interface Walk {
  lines: string[];
  line: string;
  chars: number;
  /** Depth of table cells; inside a cell a paragraph does not end the line. */
  cells: number;
  unseen: number;
}

/** Returns the text of a document, spreadsheet or presentation in OpenDocument format. */
export function readOpenDocument(bytes: Uint8Array): Extract {
  const content = checkZip(bytes).find(({ name }) => name === "content.xml");
  if (content === undefined) throw new Unreadable("is damaged");
  const walk: Walk = { lines: [], line: "", chars: 0, cells: 0, unseen: 0 };
  const parser = new Parser(
    {
      onopentag: (name, attributes) => open(walk, name, attributes),
      onclosetag: (name) => close(walk, name),
      ontext: (text) => {
        if (walk.unseen === 0) walk.line += text.replaceAll(/\s+/g, " ");
        if (walk.chars + walk.line.length > MAX_FILE_CHARS) parser.pause();
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.end(new TextDecoder().decode(unpackEntry(bytes, content)));
  endLine(walk);
  return { text: walk.lines.join("\n") };
}

function open(walk: Walk, name: string, attributes: Record<string, string>): void {
  if (UNSEEN.has(name)) walk.unseen += 1;
  if (name === CELL) walk.cells += 1;
  if (name === "table:table") endLine(walk);
  if (Object.hasOwn(SIGNS, name)) walk.line += SIGNS[name]?.(attributes) ?? "";
  if (name === "table:table") endLine(walk);
  if (name === "text:p" && walk.cells > 0 && !/(^|\s)$/.test(walk.line.slice(-1))) walk.line += " ";
}

/** Plain text for elements that mean something without text, such as tabs. */
const SIGNS: Record<string, (attributes: Record<string, string>) => string> = {
  "text:h": (attributes) => `${"#".repeat(upTo(MAX_LEVEL, attributes["text:outline-level"]))} `,
  "text:tab": () => "\t",
  "text:s": (attributes) => " ".repeat(upTo(MAX_SPACES, attributes["text:c"])),
  "table:table": (attributes) => `Table ${attributes["table:name"] ?? ""}:`,
};

function upTo(limit: number, count = "1"): number {
  return /^\d{1,3}$/.test(count) ? Math.min(limit, Number(count)) : 1;
}

function close(walk: Walk, name: string): void {
  if (UNSEEN.has(name)) walk.unseen -= 1;
  if (name === CELL) {
    walk.cells -= 1;
    walk.line += BETWEEN_CELLS;
  }
  if (name === ROW) endLine(walk);
  else if (LINES.has(name) && walk.cells === 0) endLine(walk);
}

function endLine(walk: Walk): void {
  let end = walk.line.length;
  while (end > 0 && BETWEEN_CELLS.includes(walk.line.charAt(end - 1))) end -= 1;
  const line = walk.line.slice(0, end).trimStart();
  if (line !== "") walk.lines.push(line);
  walk.chars += walk.line.length;
  walk.line = "";
}
