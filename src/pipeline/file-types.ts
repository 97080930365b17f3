import type { LinkGuard } from "../mail/writing/markdown.ts";
import { harmlessPage } from "../mail/writing/page.ts";
import { harmlessCalendar, harmlessCard } from "../trust/shown/harmless-cards.ts";
import { harmlessCells, harmlessMarkdown, harmlessXml } from "../trust/shown/harmless-text.ts";

/** How a text file is sent, by the ending of its name. */
export interface FileType {
  content_type: string;
  /** Takes out what could act when the file is opened; null if that cannot be told. */
  harmless?: (text: string, guard: LinkGuard) => string | null;
  /** Set if some systems run the file when it is opened. */
  program?: true;
}

const text = (subtype: string): FileType => ({ content_type: `text/${subtype}; charset=utf-8` });
const program: FileType = { ...text("plain"), program: true };
const plain: FileType = { ...text("plain"), harmless: (words, guard) => guard.clean(words) };
const source = text("plain");
const yaml: FileType = { content_type: "application/yaml" };
const json: FileType = { content_type: "application/json" };
const page: FileType = { ...text("html"), harmless: harmlessPage };
const markdown: FileType = { ...text("markdown"), harmless: harmlessMarkdown };

/**
 * Text files that may be sent, by the ending of the name. All other text, such as SVG, MHT or a shortcut, could act
 * when it is opened.
 */
export const TEXT_TYPES: ReadonlyMap<string, FileType> = new Map(
  Object.entries({
    txt: plain,
    text: plain,
    log: plain,
    md: markdown,
    markdown,
    html: page,
    htm: page,
    csv: { ...text("csv"), harmless: harmlessCells },
    tsv: { ...text("tab-separated-values"), harmless: harmlessCells },
    json,
    geojson: json,
    jsonl: source,
    ics: { ...text("calendar"), harmless: harmlessCalendar },
    vcf: { ...text("vcard"), harmless: harmlessCard },
    xml: { content_type: "application/xml", harmless: harmlessXml },
    yaml,
    yml: yaml,
    toml: source,
    ini: source,
    sql: source,
    diff: source,
    patch: source,
    tex: source,
    bib: source,
    srt: source,
    vtt: source,
    css: source,
    c: source,
    h: source,
    cpp: source,
    cs: source,
    go: source,
    java: source,
    kt: source,
    rs: source,
    swift: source,
    ts: source,
    tsx: source,
    js: program,
    py: program,
    sh: program,
    rb: program,
    pl: program,
    php: program,
    lua: program,
    r: program,
  } satisfies Record<string, FileType>),
);

/** Files of tools that are passed on as they are: nothing in them is run when they are looked at. */
export const MEDIA_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    png: "image/png",
    jpg: "image/jpeg",
    jpeg: "image/jpeg",
    gif: "image/gif",
    webp: "image/webp",
    avif: "image/avif",
    heic: "image/heic",
    bmp: "image/bmp",
    tiff: "image/tiff",
    mp3: "audio/mpeg",
    wav: "audio/wav",
    ogg: "audio/ogg",
    m4a: "audio/mp4",
    mp4: "video/mp4",
    webm: "video/webm",
    pdf: "application/pdf",
    docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    odt: "application/vnd.oasis.opendocument.text",
    ods: "application/vnd.oasis.opendocument.spreadsheet",
    odp: "application/vnd.oasis.opendocument.presentation",
  }),
);

/** The ending that the name of a file of this type usually has. */
export function endingOf(content_type: string): string | undefined {
  const wanted = content_type.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const types = [
    ...[...TEXT_TYPES].map(([ending, type]) => [ending, type.content_type] as const),
    ...MEDIA_TYPES,
  ];
  return types.find(([, type]) => type.split(";", 1)[0] === wanted)?.[0];
}
