import { join } from "node:path";
import { constants, crc32, deflateRawSync, deflateSync } from "node:zlib";
import type { FileToRead } from "../../src/files/reading.ts";

const FIXTURES = join(import.meta.dir, "../fixtures/files");

/** A file of test/fixtures/files, sent as nothing in particular unless its type is given. */
export async function fixture(name: string, content_type = "application/octet-stream"): Promise<FileToRead> {
  return { filename: name, content_type, bytes: await Bun.file(join(FIXTURES, name)).bytes() };
}

export function fileOf(filename: string, content: string | Uint8Array, content_type = ""): FileToRead {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return { filename, content_type, bytes };
}

export interface ZipPart {
  name: string;
  content: string | Uint8Array;
  /** What the archive says of its size, if not the truth. */
  claimed?: number;
  /** In the place of the content, packed already; the claim goes with it. */
  packed?: Uint8Array;
  encrypted?: boolean;
}

/** A zip archive, APPNOTE.TXT §4.3. */
export function zipOf(parts: ZipPart[]): Uint8Array<ArrayBuffer> {
  const files: Buffer[] = [];
  const table: Buffer[] = [];
  let offset = 0;
  for (const { name, content, claimed, encrypted = false, ...given } of parts) {
    const bytes = Buffer.from(content as string);
    const packed = Buffer.from(given.packed ?? deflateRawSync(bytes, { level: 9 }));
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(encrypted ? 1 : 0, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.byteLength, 14);
    common.writeUInt32LE(claimed ?? bytes.byteLength, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    files.push(Buffer.from("PK\x03\x04"), common, Buffer.from(name), packed);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    table.push(Buffer.from("PK\x01\x02\x14\x00"), common, rest, Buffer.from(name));
    offset += 30 + Buffer.byteLength(name) + packed.byteLength;
  }
  const tableBytes = Buffer.concat(table);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(parts.length, 8);
  end.writeUInt16LE(parts.length, 10);
  end.writeUInt32LE(tableBytes.byteLength, 12);
  end.writeUInt32LE(offset, 16);
  return new Uint8Array(Buffer.concat([...files, tableBytes, end]));
}

const CONTENT_TYPES = `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>`;
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

function relation(target: string): string {
  return `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="${target}"/></Relationships>`;
}

/** The parts of a Word document whose body is `body`; `prolog` stands before its root element. */
export function docxParts(body: string, prolog = ""): ZipPart[] {
  return [
    { name: "[Content_Types].xml", content: CONTENT_TYPES },
    { name: "_rels/.rels", content: relation("word/document.xml") },
    {
      name: "word/document.xml",
      content: `<?xml version="1.0"?>${prolog}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${body}</w:body></w:document>`,
    },
  ];
}

export function paragraph(text: string): string {
  return `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`;
}

/** The parts of a workbook with one sheet; `prolog` stands before the sheet's root element. */
export function xlsxParts(rows: string, prolog = ""): ZipPart[] {
  const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
  return [
    { name: "[Content_Types].xml", content: CONTENT_TYPES },
    { name: "_rels/.rels", content: relation("xl/workbook.xml") },
    {
      name: "xl/workbook.xml",
      content: `<?xml version="1.0"?><workbook xmlns="${main}" xmlns:r="${OFFICE}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    },
    {
      name: "xl/_rels/workbook.xml.rels",
      content: `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
    },
    {
      name: "xl/worksheets/sheet1.xml",
      content: `<?xml version="1.0"?>${prolog}<worksheet xmlns="${main}"><sheetData>${rows}</sheetData></worksheet>`,
    },
  ];
}

/** A PDF of these objects, the first of which is its catalogue. */
export function pdfOf(objects: (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const parts: Buffer[] = [Buffer.from("%PDF-1.5\n")];
  const offsets: string[] = [];
  let length = 9;
  for (const [index, object] of objects.entries()) {
    const bytes = Buffer.concat([
      Buffer.from(`${index + 1} 0 obj\n`),
      Buffer.from(object as string),
      END_OF_OBJECT,
    ]);
    offsets.push(`${String(length).padStart(10, "0")} 00000 n \n`);
    length += bytes.byteLength;
    parts.push(bytes);
  }
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join("")}`;
  const end = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${length}\n%%EOF\n`;
  return new Uint8Array(Buffer.concat([...parts, Buffer.from(table + end)]));
}

const END_OF_OBJECT = Buffer.from("\nendobj\n");

/** A PDF of one page for each content, packed as `filter` says (`/FlateDecode`). */
export function pdfOfPages(contents: (string | Uint8Array)[], filter = ""): Uint8Array<ArrayBuffer> {
  const pages = contents.map((_, index) => `${4 + 2 * index} 0 R`);
  return pdfOf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${pages.join(" ")}] /Count ${pages.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...contents.flatMap((content, index) => {
      const bytes = Buffer.from(content as string);
      const dict = `<< /Length ${bytes.byteLength}${filter && ` /Filter ${filter}`} >>`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents ${5 + 2 * index} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
        Buffer.concat([Buffer.from(`${dict}\nstream\n`), bytes, Buffer.from("\nendstream")]),
      ];
    }),
  ]);
}

/** What a page of a PDF says, line by line. */
export function words(...lines: string[]): string {
  return `BT /F1 12 Tf 12 TL 50 790 Td ${lines.map((line) => `(${line}) '`).join(" ")} ET`;
}

/** A PNG of one colour, all of it there. */
export function pngOf(width: number, height: number): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8);
  const rows = deflateSync(new Uint8Array((width + 1) * height), { level: 1 });
  const chunk = (type: string, data: Uint8Array): Buffer => {
    const named = Buffer.concat([Buffer.from(type), data]);
    const sizes = Buffer.alloc(8);
    sizes.writeUInt32BE(data.byteLength, 0);
    sizes.writeUInt32BE(crc32(named), 4);
    return Buffer.concat([sizes.subarray(0, 4), named, sizes.subarray(4)]);
  };
  const mark = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const parts = [mark, chunk("IHDR", header), chunk("IDAT", rows), chunk("IEND", new Uint8Array())];
  return new Uint8Array(Buffer.concat(parts));
}

/**
 * A square grey progressive JPEG (ITU-T T.81), put together from so many scans of which each says in a few bytes that nothing changes.
 */
export function jpegOf(side: number, scans: number): Uint8Array<ArrayBuffer> {
  const segment = (marker: number, body: number[]): Buffer =>
    Buffer.from([0xff, marker, (body.length + 2) >> 8, (body.length + 2) & 0xff, ...body]);
  const size = [side >> 8, side & 0xff];
  const blocks = Math.ceil(side / 8) ** 2;
  // Each run is the code 0 (EOB14) and fourteen bits, and goes over 32,767 blocks without a change.
  const bits = `0${"1".repeat(14)}`.repeat(Math.ceil(blocks / 32_767));
  const runs = (bits.padEnd(Math.ceil(bits.length / 8) * 8, "1").match(/.{8}/g) ?? []).flatMap((octet) =>
    octet === "11111111" ? [0xff, 0] : [Number.parseInt(octet, 2)],
  );
  const scan = Buffer.concat([segment(0xda, [1, 1, 0, 1, 63, 0]), Buffer.from(runs)]);
  const parts = [
    Buffer.from([0xff, 0xd8]),
    segment(0xdb, [0, ...Array<number>(64).fill(1)]),
    segment(0xc2, [8, ...size, ...size, 1, 1, 0x11, 0]),
    segment(0xc4, [0, 1, ...Array<number>(16).fill(0)]),
    segment(0xc4, [0x10, 1, 1, ...Array<number>(14).fill(0), 0xe0, 0]),
    segment(0xda, [1, 1, 0, 0, 0, 0]),
    Buffer.alloc(Math.ceil(blocks / 8)),
    ...Array<Buffer>(scans - 1).fill(scan),
    Buffer.from([0xff, 0xd9]),
  ];
  return new Uint8Array(Buffer.concat(parts));
}

const BOMB_BLOCK = (() => {
  const bytes = new Uint8Array(16 * 1_048_576).fill(0x20);
  // A full flush ends on a whole byte and forgets what came before, so that the block can be repeated.
  return deflateRawSync(bytes, { level: 9, finishFlush: constants.Z_FULL_FLUSH });
})();

/** Blanks, packed a thousand to one, as raw DEFLATE (RFC 1951). */
export function packedBlanks(megabytes: number): Buffer {
  return Buffer.concat([...Array<Buffer>(Math.ceil(megabytes / 16)).fill(BOMB_BLOCK), Buffer.from([3, 0])]);
}

/** The same with the head of RFC 1950; the checksum at its end is wrong. */
export function zlibBlanks(megabytes: number): Buffer {
  return Buffer.concat([Buffer.from([0x78, 0xda]), packedBlanks(megabytes), Buffer.alloc(4)]);
}
