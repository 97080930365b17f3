import type { HtmlElement } from "./html-style.ts";

/** A picture that the HTML of a mail shows. */
export interface ShownPicture {
  /** Its Content-ID; null for one from elsewhere. */
  cid: string | null;
  /** Whether it stands in the signature. */
  signature: boolean;
}

/** The picture that an element is, if it is one. */
export function pictureIn({ name, attributes }: HtmlElement, signature: boolean): ShownPicture[] {
  return name === "img" ? [{ cid: cidIn(attributes["src"] ?? ""), signature }] : [];
}

/** The Content-ID that an address names (RFC 2392). */
function cidIn(source: string): string | null {
  const cid = /^\s*cid:(\S+)/i.exec(source)?.[1] ?? null;
  try {
    return cid && decodeURIComponent(cid);
  } catch {
    return cid;
  }
}

/** The Content-IDs of the pictures that stand in the signature and nowhere else. */
export function signaturePictures(pictures: ShownPicture[]): string[] {
  const elsewhere = new Set(pictures.filter(({ signature }) => !signature).map(({ cid }) => cid));
  return pictures.flatMap(({ cid }) => (cid === null || elsewhere.has(cid) ? [] : [cid]));
}

/** Whether an element is in the bookmark that Outlook sets around its signature; some words there have none. */
export function isBookmarked({ attributes }: HtmlElement, parent: { bookmarked: boolean }): boolean {
  return (
    parent.bookmarked ||
    attributes["name"]?.toLowerCase() === "_mailautosig" ||
    attributes["style"]?.toLowerCase().includes("mso-bookmark:_mailautosig") === true
  );
}
