import { getDocumentProxy } from "unpdf";
import { ownMs } from "../lib/processor-time.ts";
import { counted, type Extract, MAX_FILE_CHARS, Unreadable } from "./reading.ts";

const MAX_PAGES = 200;
/** Time of the processor after which reading stops, well before the thread would be ended, so that the pages read until then count. */
const STOP_AFTER_MS = 7_000;
/**
 * Predefined encodings of Chinese, Japanese and Korean (ISO 32000-2 table 116), for which a reader must have the
 * tables. This one has none, so text in them is lost.
 */
const LOST_ENCODING = /\/Encoding\s*\/(?!Identity-)[\w-]+-[HV]\b/;

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

/** Returns the text of a PDF, page by page. Ignores pictures. */
export async function readPdf(bytes: Uint8Array): Promise<Extract> {
  const began_ms = ownMs();
  // Done first, because the library takes ownership of the bytes.
  const hasLost = LOST_ENCODING.test(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1"),
  );
  const pdf = await openPdf(bytes);
  const last = Math.min(pdf.numPages, MAX_PAGES);
  const pages: (string | null)[] = [];
  let chars = 0;
  while (pages.length < last && chars <= MAX_FILE_CHARS && ownMs() - began_ms < STOP_AFTER_MS) {
    const text = await pageText(pdf, pages.length + 1);
    pages.push(text);
    chars += text?.length ?? 0;
  }
  await pdf.loadingTask.destroy();
  return extractOf({ pages, all: pdf.numPages, hasLost });
}

async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  try {
    return await getDocumentProxy(bytes, {
      // Avoids a search for system fonts on disk, and printed warnings.
      useSystemFonts: false,
      disableFontFace: true,
      verbosity: 0,
    });
  } catch (error) {
    if (error instanceof Error && error.name === "PasswordException")
      throw new Unreadable("is protected with a password");
    throw error;
  }
}

/** Returns the text of a page; null for a damaged page, since the others may be fine. */
async function pageText(pdf: Pdf, number: number): Promise<string | null> {
  try {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items
      .map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : ""}` : ""))
      .join("")
      .trim();
  } catch {
    return null;
  }
}

interface PdfText {
  /** Null for a damaged page. */
  pages: (string | null)[];
  /** How many pages the file has. */
  all: number;
  hasLost: boolean;
}

function extractOf(pdf: PdfText): Extract {
  const { pages, all } = pdf;
  if (!pages.some(Boolean)) throw new Unreadable(withoutText(pdf));
  const partly = partOf(pdf);
  return {
    text: pages.map((page, index) => `[Page ${index + 1}]\n${page ?? ""}`).join("\n\n"),
    extent: pages.length < all ? `${pages.length} of ${counted(all, "page")}` : counted(all, "page"),
    ...(partly !== undefined && { partly }),
  };
}

function withoutText({ pages, all, hasLost }: PdfText): string {
  if (pages.includes(null)) return "is damaged";
  if (hasLost)
    return "is in an East Asian encoding that can't be read; print it to a new PDF, or send it as pictures";
  return pages.length < all
    ? `has no text layer on its first ${counted(pages.length, "page")}`
    : "has no text layer; send pictures of its pages";
}

function partOf({ pages, all, hasLost }: PdfText): string | undefined {
  if (pages.length < all) return `only the first ${pages.length} of ${counted(all, "page")} were read`;
  if (hasLost) return "the text in East Asian encodings was not read";
  const without = pages.filter((page) => !page).length;
  if (without === 0) return undefined;
  return `${counted(without, "page has", "pages have")} no text that could be read`;
}
