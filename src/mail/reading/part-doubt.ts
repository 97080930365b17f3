import { isOddCharset } from "./charsets.ts";
import { readHeaderBlock } from "./header-block.ts";
import { readMimeValue } from "./mime-value.ts";

const MAX_HEADER_BYTES = 64 * 1024;
const MAX_HEADER_LINES = 2_000;
const CR = 0x0d;
const DASH = 0x2d;

/** What mailsplit (as of 5.4.19) has read of a part. */
export interface SplitPart {
  contentType: string | false;
  disposition: string | false;
  encoding: string | false;
  charset: string | false;
  filename: string | false;
  flowed: boolean;
  delSp: boolean;
  multipart: string | false;
  headers: { getList(): { key: string; line: string }[] } | false;
  _boundary: Uint8Array | false;
  _parentBoundaryOwner: SplitPart | false;
  _headersLines: Uint8Array[];
  _headerlen: number;
}

/** mailsplit's splitter. `checkBoundary` returns what a border line ends or begins, or false for any other line. */
export interface Splitter {
  node: SplitPart;
  checkBoundary(line: Uint8Array): 1 | 2 | 3 | 4 | false;
}

const SINGULAR = [
  "content-type",
  "content-disposition",
  "content-transfer-encoding",
  "content-id",
  "content-description",
];

/**
 * Returns why another program could read a part, or its borders, differently; null if none could. Doubtful text is no
 * part of an instruction: the author saw the mail in another program than ours.
 */
export function doubtIn(part: SplitPart): string | null {
  const raw = Buffer.concat(part._headersLines);
  const { fields, problem } = readHeaderBlock(raw, { bytes: MAX_HEADER_BYTES, lines: MAX_HEADER_LINES });
  if (problem !== null) return `in the header of a part ${problem}`;
  // For some programs a line of blanks ends the header (RFC 5322 §4.2), and so does a name with blanks before its colon
  // (§4.5).
  const odd = fields.find(({ start, end }) =>
    /\n[ \t]+\r?\n|^[^:]*[ \t]:/.test(raw.toString("latin1", start, end)),
  );
  if (odd) return "the header of a part ends elsewhere for some programs";
  const twice = SINGULAR.find((name) => fields.filter((field) => field.name === name).length > 1);
  if (twice !== undefined) return `a part has more than one ${twice} field`;
  const list = part.headers ? part.headers.getList().filter(({ line }) => line !== "") : [];
  const is_same = list.length === fields.length && list.every(({ key }, at) => key === fields[at]?.name);
  if (!is_same) return "the header of a part can be read in two ways";
  const valueOf = (name: string): string => fields.find((field) => field.name === name)?.value ?? "";
  const differing = [
    typeDiffers(part, valueOf("content-type")) && "content-type",
    dispositionDiffers(part, valueOf("content-disposition"), valueOf("content-type")) &&
      "content-disposition",
    encodingDiffers(part, valueOf("content-transfer-encoding")) && "content-transfer-encoding",
  ].find((name) => name !== false);
  return differing === undefined ? null : `the ${differing} of a part can be read in two ways`;
}

function typeDiffers(part: SplitPart, text: string): boolean {
  const type = readMimeValue(text);
  if (!type) return true;
  const { value, parameters } = type;
  // Without a type a part is plain text, or what its file name says.
  const is_named = value === "" ? part.contentType !== false : part.contentType === value;
  const is_multipart = value.startsWith("multipart/");
  if (!is_named || is_multipart !== Boolean(part.multipart)) return true;
  return bordersDiffer(part, parameters, is_multipart) || textDiffers(part, parameters);
}

/**
 * Whether programs may see different borders (RFC 2046 §5.1.1). In anything but a multipart a boundary would open parts
 * inside a text.
 */
function bordersDiffer(part: SplitPart, parameters: Map<string, string>, is_multipart: boolean): boolean {
  const boundary = parameters.get("boundary") ?? "";
  const theirs = part._boundary ? Buffer.from(part._boundary).toString() : "";
  return boundary !== theirs || boundary.endsWith(" ") || is_multipart !== (boundary !== "");
}

function textDiffers(part: SplitPart, parameters: Map<string, string>): boolean {
  const is_flowed = parameters.get("format")?.toLowerCase() === "flowed";
  const is_joined = parameters.get("delsp")?.toLowerCase() === "yes";
  const charset = parameters.get("charset") ?? "";
  return (
    charset !== (part.charset || "") ||
    isOddCharset(charset) ||
    is_flowed !== part.flowed ||
    (is_flowed && is_joined !== part.delSp)
  );
}

function dispositionDiffers(part: SplitPart, text: string, type: string): boolean {
  const disposition = readMimeValue(text);
  if (!disposition) return true;
  const named = (parameters: Map<string, string> | undefined, wanted: RegExp): boolean =>
    [...(parameters ?? [])].some(([name, value]) => wanted.test(name) && value !== "");
  const has_name =
    named(disposition.parameters, /^filename(\*.*)?$/) ||
    named(readMimeValue(type)?.parameters, /^name(\*.*)?$/);
  return disposition.value !== (part.disposition || "") || has_name !== Boolean(part.filename);
}

/** Whether programs may decode a part differently (RFC 2045 §6.1); a multipart has no encoding of its own (§6.4). */
function encodingDiffers(part: SplitPart, text: string): boolean {
  const encoding = readMimeValue(text);
  if (!encoding || encoding.parameters.size > 0 || encoding.value !== (part.encoding || "")) return true;
  return Boolean(part.multipart) && /^(?:base64|quoted-printable)$/.test(encoding.value);
}

/**
 * Calls `doubt` for every line that another program could take for a border between parts, or not take for one. The
 * splitter knows only the borders of the innermost parts: a part that an outer border begins would otherwise end the
 * text before it unnoticed.
 */
export function watchBorders(splitter: Splitter, doubt: (why: string) => void): void {
  const check = splitter.checkBoundary.bind(splitter);
  const why = "a line in it can be taken for the border between two parts, or not";
  splitter.checkBoundary = (line) => {
    const { node } = splitter;
    const found = check(line);
    if (found !== false) {
      // In doubt are: a multipart that ends before it has begun (2), a border behind a CR, and one in a header that no
      // empty line has ended.
      if (found === 2 || line[0] === CR || isInHeader(node)) doubt(why);
      return found;
    }
    const bordered = borderedBy(line, node);
    if (bordered === false) return false;
    doubt(why);
    if (bordered === node) return false;
    splitter.node = childTowards(node, bordered);
    const outer = check(line);
    if (outer === false) splitter.node = node;
    return outer;
  };
}

/** Returns the child of `outer` that is `node` or contains it. */
function childTowards(node: SplitPart, outer: SplitPart): SplitPart {
  let part = node;
  while (part._parentBoundaryOwner !== false && part._parentBoundaryOwner !== outer)
    part = part._parentBoundaryOwner;
  return part;
}

function isInHeader(node: SplitPart): boolean {
  return node.headers === false && node._headerlen > 0;
}

const BEHIND_BORDER = /^(?:--)?[ \t]*\r*\n?$/;

/**
 * Returns the part whose border a line is, or false. Blanks may follow a border, and the border of an outer part ends
 * the inner ones as well (RFC 2046 §5.1.1).
 */
function borderedBy(line: Uint8Array, node: SplitPart): SplitPart | false {
  const start = line[0] === CR ? 1 : 0;
  if (line[start] !== DASH || line[start + 1] !== DASH) return false;
  for (let part: SplitPart | false = node; part !== false; part = part._parentBoundaryOwner)
    if (part._boundary && startsWith(line, start + 2, part._boundary)) {
      const behind = Buffer.from(line).toString("latin1", start + 2 + part._boundary.length);
      if (BEHIND_BORDER.test(behind)) return part;
    }
  return false;
}

function startsWith(line: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let index = 0; index < wanted.length; index++) if (line[at + index] !== wanted[index]) return false;
  return true;
}
