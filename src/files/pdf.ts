import { getDocumentProxy } from "unpdf";
import { counted, type Extract, MAX_FILE_CHARS, Unreadable } from "./reading.ts";

const MAX_PAGES = 200;
/** Well before the thread is ended, so that the pages read until then count. */
const STOP_AFTER_MS = 7_000;

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

/** The text of a PDF, page by page. Pictures are not looked at. */
export async function readPdf(bytes: Uint8Array): Promise<Extract> {
  const started = performance.now();
  const pdf = await openPdf(bytes);
  const last = Math.min(pdf.numPages, MAX_PAGES);
  const pages: (string | null)[] = [];
  let chars = 0;
  while (pages.length < last && chars <= MAX_FILE_CHARS && performance.now() - started < STOP_AFTER_MS) {
    const text = await pageText(pdf, pages.length + 1);
    pages.push(text);
    chars += text?.length ?? 0;
  }
  await pdf.loadingTask.destroy();
  return extractOf(pages, pdf.numPages);
}

async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  try {
    return await getDocumentProxy(bytes, {
      // A font of this machine would be looked for on disk, and warnings would be printed.
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

/** Null for a page that is damaged, which says nothing about the others. */
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

function extractOf(pages: (string | null)[], all: number): Extract {
  const withText = pages.filter(Boolean).length;
  if (withText === 0)
    throw new Unreadable(pages.includes(null) ? "is damaged" : withoutText(pages.length, all));
  const partly = partOf(pages.length, withText, all);
  return {
    text: pages.map((page, index) => `[Page ${index + 1}]\n${page ?? ""}`).join("\n\n"),
    extent: pages.length < all ? `${pages.length} of ${counted(all, "page")}` : counted(all, "page"),
    ...(partly !== undefined && { partly }),
  };
}

function withoutText(read: number, all: number): string {
  return read < all ? `has no text layer on its first ${counted(read, "page")}` : "has no text layer";
}

function partOf(read: number, withText: number, all: number): string | undefined {
  if (read < all) return `only the first ${read} of ${counted(all, "page")} were read`;
  const without = read - withText;
  if (without === 0) return undefined;
  return `${counted(without, "page has", "pages have")} no text that could be read`;
}
