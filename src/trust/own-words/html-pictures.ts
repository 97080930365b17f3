import type { HtmlElement } from "./html-style.ts";

/** A picture that the HTML of a mail shows. */
export interface ShownPicture {
  /** Its Content-ID; null for a remote picture. */
  cid: string | null;
  /** Whether it is in the signature. */
  signature: boolean;
}

/** Returns the picture of an element, if it is one. */
export function pictureIn({ name, attributes }: HtmlElement, signature: boolean): ShownPicture[] {
  return name === "img" ? [{ cid: cidIn(attributes["src"] ?? ""), signature }] : [];
}

/** Returns the Content-ID in a `cid:` URL (RFC 2392). */
function cidIn(source: string): string | null {
  const cid = /^\s*cid:(\S+)/i.exec(source)?.[1] ?? null;
  try {
    return cid && decodeURIComponent(cid);
  } catch {
    return cid;
  }
}

/** Returns the Content-IDs of pictures that are in the signature and nowhere else. */
export function signaturePictures(pictures: ShownPicture[]): string[] {
  const elsewhere = new Set(pictures.filter(({ signature }) => !signature).map(({ cid }) => cid));
  return pictures.flatMap(({ cid }) => (cid === null || elsewhere.has(cid) ? [] : [cid]));
}

/**
 * Returns whether an element is in the bookmark that Outlook puts around its signature; not all of the signature has
 * it.
 */
export function isBookmarked({ attributes }: HtmlElement, parent: { bookmarked: boolean }): boolean {
  return (
    parent.bookmarked ||
    attributes["name"]?.toLowerCase() === "_mailautosig" ||
    attributes["style"]?.toLowerCase().includes("mso-bookmark:_mailautosig") === true
  );
}
