import { Transform } from "node:stream";
import { MailParser, type MailParserOptions } from "mailparser";
import { messageOf } from "../../errors.ts";
import { safeFilename } from "../../trust/shown/attachment-name.ts";
import { asWindows1252, decodeCharset, namesNoCharset } from "./charsets.ts";
import { MAX_HEADER_BYTES, type MailHeaders, readHeaders } from "./headers.ts";
import type { MailAttachment, ParseProblem } from "./parse.ts";
import { doubtIn, type Splitter, type SplitPart, watchBorders } from "./part-doubt.ts";
import { takeUuencoded, UUENCODED, uudecode } from "./uuencode.ts";
import { type PackedMail, typeOf, unpackWinmail } from "./winmail.ts";

const MAX_PARTS = 1_000;
const MAX_DEPTH = 100;
const MAX_ADDRESSES = 1_000;

/** `ignoreEmbedded` keeps attached mails whole: a forwarded mail must never pass for the sender's own text. */
const OPTIONS = {
  skipTextToHtml: true,
  skipTextLinks: true,
  skipHtmlToText: true,
  skipImageLinks: true,
  ignoreEmbedded: true,
  maxHeadSize: MAX_HEADER_BYTES,
  maxChildNodes: MAX_PARTS,
} as MailParserOptions;

/** What mailparser knows of one part. mailparser's own `text` joins all text parts, which would not be safe here. */
export interface Part {
  contentType: string | false;
  disposition?: string;
  charset?: string;
  textContent?: string;
  headers: Map<string, unknown>;
  node: { filename: string | false; disposition?: string | false; charset?: string | false };
  flowed: { del_sp: boolean } | null;
  parent?: Part;
  children: Part[];
  is_attachment?: boolean;
  encoding?: string;
  /** The decoder of a part that is no multipart. */
  decoder?: Transform;
}

/** The parts of mailparser that it does not document, as of 3.9.31. */
interface Internals {
  tree: Part | false;
  splitter: Splitter;
  decoder: { decodeStream(charset: string): Transform };
  createNode(node: Node): Part;
}

interface Node extends SplitPart {
  parentNode?: Node | false;
}

export interface Structure {
  headers: MailHeaders;
  root: Part | null;
  files: MailAttachment[];
  /** The mails that were in a winmail.dat; its files are in `files`. */
  packed: PackedMail[];
  /** Why another program could read the mail in another way, as part of a sentence; null if none could. */
  doubt: string | null;
  problem: { code: ParseProblem; message: string } | null;
}

/** Parses a raw mail into its parts. If there is a problem, what was read until then is returned. */
export async function readStructure(raw: Uint8Array): Promise<Structure> {
  const headers = readHeaders(raw);
  const broken = headers.complete ? tooManyAddresses(headers) : TOO_LARGE_HEADERS;
  if (broken) return { headers, root: null, files: [], packed: [], doubt: null, problem: broken };
  const parser = new MailParser(OPTIONS);
  const internals = parser as unknown as Internals;
  let doubt = headers.problem && `in its header ${headers.problem}`;
  watchBorders(internals.splitter, (why) => (doubt ??= why));
  const createNode = internals.createNode.bind(parser);
  internals.createNode = (node) => {
    doubt ??= doubtIn(node);
    if (isMailOfDigest(node)) node.contentType = "message/rfc822";
    // RFC 2045 §5.2: a type without a subtype is read as plain text.
    else if (node.contentType && /^(?:[^/]+|text\/)$/.test(node.contentType)) node.contentType = "text/plain";
    if (node.filename) node.filename = asWindows1252(node.filename);
    // mailparser joins a soft line break with whatever follows, even a quote (RFC 3676 §4.5 forbids that), so flowed
    // text is handled here.
    const flowed = node.flowed ? { del_sp: node.delSp } : null;
    node.flowed = false;
    const part = Object.assign(createNode(node), { flowed });
    if (part.decoder && !part.is_attachment && namesNoCharset(part.charset ?? ""))
      unnamed.set(part, bytesOf(part.decoder));
    return part;
  };
  internals.decoder = { decodeStream };
  const unnamed = new Map<Part, Buffer[]>();
  const files: MailAttachment[] = [];
  const { promise, resolve } = Promise.withResolvers<Structure["problem"]>();
  parser.on("data", (part) => {
    if (part.type === "attachment") collect(part as AttachmentPart, files);
  });
  parser.on("end", () => resolve(null));
  parser.on("error", (error: unknown) => resolve(problemOf(error)));
  parser.write(headOf(headers));
  parser.end(raw.subarray(headers.body_offset));
  const problem = await promise;
  const root = internals.tree === false ? null : internals.tree;
  // Text before the first border is a note that few programs show. In a multipart without parts it would be all there
  // is.
  if ([...partsOf(root)].some(isHollow)) doubt ??= "it says that it is made of parts and has none";
  decodeUnnamed(unnamed);
  takeFilesOfTexts(raw, root, files);
  return { headers, root, ...unpackWinmail(files, MAX_PARTS), doubt, problem: problem ?? tooDeep(root) };
}

/** Takes out files in the midst of a text, as programs sent files before MIME. */
function takeFilesOfTexts(raw: Uint8Array, root: Part | null, files: MailAttachment[]): void {
  // Bytes are much faster to search than texts.
  const has_begin = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).includes("begin ");
  for (const part of partsOf(root)) {
    if (!has_begin && part.encoding !== "base64") continue;
    if (part.contentType !== "text/plain" || part.textContent === undefined || part.node.filename) continue;
    const { text, files: found } = takeUuencoded(part.textContent, MAX_PARTS - files.length);
    part.textContent = text;
    for (const { name, bytes } of found) {
      files.push(
        attachment({ filename: name, type: typeOf(name), number: files.length + 1 }, [bytes], undefined),
      );
    }
  }
}

/** Decodes texts that name no character set, which mailparser takes for UTF-8 without looking. */
function decodeUnnamed(texts: Map<Part, Buffer[]>): void {
  for (const [part, bytes] of texts)
    if (part.textContent?.includes("\uFFFD"))
      part.textContent = decodeCharset(Buffer.concat(bytes), undefined)?.replaceAll("\r\n", "\n") ?? "";
}

/** Records what a decoder returns from now on; its reader still gets all of it. */
function bytesOf(decoder: Transform): Buffer[] {
  const chunks: Buffer[] = [];
  const push = decoder.push.bind(decoder);
  decoder.push = (chunk: Buffer | null, encoding) => {
    if (chunk) chunks.push(chunk);
    return push(chunk, encoding);
  };
  return chunks;
}

/** A decoder to UTF-8 for text of a character set; bytes of an unknown set pass unchanged. */
function decodeStream(charset: string): Transform {
  const chunks: Buffer[] = [];
  return new Transform({
    transform(chunk: Buffer, _, done) {
      chunks.push(chunk);
      done();
    },
    // Only the whole text tells which set it is in, and a character may be cut between two chunks.
    flush(done) {
      const bytes = Buffer.concat(chunks);
      done(null, decodeCharset(bytes, charset) ?? bytes);
    },
  });
}

function isHollow({ contentType, children }: Part): boolean {
  return (contentType || "").startsWith("multipart/") && children.length === 0;
}

/**
 * The header fields that say how the body is to be read, as this server reads them: mailparser never sees the header
 * itself.
 */
function headOf({ fields }: MailHeaders): string {
  const own = fields.filter(({ name }) => name.startsWith("content-"));
  return `${own.map(({ name, value }) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** Whether a part is a mail because it is in a digest and names no type of its own (RFC 2046 §5.1.5). */
function isMailOfDigest({ contentType, headers, parentNode }: Node): boolean {
  if (!parentNode || !parentNode.contentType || !parentNode.contentType.startsWith("multipart/digest"))
    return false;
  const fields = headers ? headers.getList() : [];
  return contentType === false || !fields.some(({ key }) => key === "content-type");
}

interface AttachmentPart {
  contentType: string | false;
  contentDisposition?: string;
  filename?: string | false;
  cid?: string;
  headers: Map<string, unknown>;
  content: NodeJS.ReadableStream;
  release(): void;
}

function collect(part: AttachmentPart, files: MailAttachment[]): void {
  const chunks: Uint8Array[] = [];
  part.content.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  part.content.on("end", () => {
    const type = part.contentType || "application/octet-stream";
    const is_uuencoded = UUENCODED.test(String(part.headers.get("content-transfer-encoding")));
    files.push(
      attachment(
        { filename: part.filename || "", type, number: files.length + 1 },
        is_uuencoded ? [uudecode(Buffer.concat(chunks))] : chunks,
        part.contentDisposition === "attachment" ? undefined : part.cid,
      ),
    );
    part.release();
  });
}

function attachment(
  { filename, type, number }: { filename: string; type: string; number: number },
  chunks: Uint8Array[],
  cid: string | undefined,
): MailAttachment {
  // Buffer.concat is not used: its memory may be shared with others, and these bytes are handed to another thread.
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  const name = safeFilename(filename, type, number);
  const file = { filename: name, content_type: type, size: bytes.length, bytes, inline: cid !== undefined };
  return cid === undefined ? file : { ...file, cid };
}

function problemOf(error: unknown): Structure["problem"] {
  const message = messageOf(error);
  if (!message.startsWith("Max ")) {
    return {
      code: "crashed",
      message: "The mail is built in a way that could not be read. Send it again as plain text.",
    };
  }
  return message.includes("header") ? TOO_LARGE_HEADERS : TOO_MANY_PARTS;
}

const TOO_LARGE_HEADERS = {
  code: "headers_too_large",
  message:
    "The mail's header is larger than 64 KB, so the mail was not read. Send it with fewer header fields.",
} as const;
const TOO_MANY_ADDRESSES = {
  code: "headers_too_large",
  message: "The mail names more than 1,000 addresses, so it was not read. Send it to fewer recipients.",
} as const;
const TOO_MANY_PARTS = {
  code: "too_many_parts",
  message:
    "The mail has more than 1,000 parts, so it was not read to its end. Send fewer files, or put them into an archive.",
} as const;
const TOO_DEEP = {
  code: "too_deep",
  message: "The mail's parts are nested more than 100 deep, so it was not read. Send its content directly.",
} as const;

function tooManyAddresses({ fields }: MailHeaders): Structure["problem"] {
  const addresses = fields
    .filter(({ name }) => /^(from|to|cc|bcc|reply-to|sender)$/.test(name))
    .reduce((sum, { value }) => sum + value.split("@").length - 1, 0);
  return addresses > MAX_ADDRESSES ? TOO_MANY_ADDRESSES : null;
}

function tooDeep(root: Part | null): Structure["problem"] {
  const depths = new Map<Part, number>();
  for (const part of partsOf(root)) {
    const depth = (part.parent === undefined ? 0 : (depths.get(part.parent) ?? 0)) + 1;
    if (depth > MAX_DEPTH) return TOO_DEEP;
    depths.set(part, depth);
  }
  return null;
}

/** All parts in the order of the mail. */
export function* partsOf(root: Part | null): Generator<Part> {
  const todo = root === null ? [] : [root];
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    yield part;
    todo.push(...part.children.toReversed());
  }
}
