import type { Declarations } from "./html-rules.ts";
import { hasLine, type HtmlElement, namesOf } from "./html-style.ts";

/** Class, id or name of what mail programs wrap a quoted or forwarded mail in. */
const QUOTE_NAME =
  /quot|forward|fwdmsg|fwd_|cite|gmail_attr|gmail_extra|appendonsend|reply[-_]?(content|section|header|mail)|reference-message|original-?(content|message)|_mailoriginal|zmail_extra|zwchr|airmail_on|__divider|__headers|olk_src_body|qmbox|edo-original|alimail_/;
const QUOTE_ELEMENTS = new Set(["blockquote", "hr", "includetail", "cite", "q", "fieldset", "details"]);
/** A line above or beside these, or beside those alone, says that a quote is inside. */
const LINED = new Set(["div", "p", "table"]);
const BARRED = new Set(["section", "article", "aside", "span", "td"]);
/** The words around these are inside them, so what stands above is the sender's own. Never true of a bare blockquote. */
const NAMES_ITS_AUTHOR =
  /gmail_(quote|attr|extra)|appendonsend|divrplyfwdmsg|reference-message|yahoo_quoted|protonmail_quote|moz-(cite-prefix|forward)/;
/** Names of elements that stand above a quote, and not around it. */
const ATTRIBUTION_NAME = /moz-cite-prefix|gmail_attr|airmail_on/;
/** Stands around an attribution, its quote and the answers below that. */
const AROUND_NAME = /gmail_quote/;
/** The last is what Avast and AVG put their note into. */
const SIGNATURE_NAME =
  /signature|moz-txt-sig|bloop_sign|mb_sig|_sig\b|zm-_id_-sgn|dab4fad8-2dd7-40bb-a1b8-4e2aa1f9fdf2/;
/** Stands above a signature, and not around it: the dashes of Gmail, the line break of Apple Mail. */
const SIGNATURE_FOLLOWS = /gmail_signature_prefix|linebreakatbeginningofsignature/;

/** The part of a quote that an element is: the quote, the line above it, or what is around both and the answers below. */
export type QuotePart = "quote" | "attribution" | "around";

/** Returns the part of a quote that begins with an element, which mail programs put around one. */
export function quotePartOf({ name, attributes }: HtmlElement): QuotePart {
  const names = namesOf(attributes);
  if (ATTRIBUTION_NAME.test(names)) return "attribution";
  return name !== "blockquote" && AROUND_NAME.test(names) ? "around" : "quote";
}

/** Whether a quote begins with an element, or with the line above one. */
export function isQuote({ name, attributes }: HtmlElement, style: Declarations): boolean {
  if (QUOTE_ELEMENTS.has(name)) return true;
  // Outlook draws a line above the header block of the mail it quotes and gives it no name; others draw one beside it.
  if (LINED.has(name) && (hasLine(style, "top") || hasLine(style, "left"))) return true;
  // A cell of an own table has lines on both sides.
  if (BARRED.has(name) && hasLine(style, "left") && !hasLine(style, "right")) return true;
  return QUOTE_NAME.test(namesOf(attributes));
}

/** Whether the words that name the author of a quote stand inside of the element. */
export function namesItsAuthor({ name, attributes }: HtmlElement, style: Declarations): boolean {
  if (QUOTE_ELEMENTS.has(name)) return false;
  return NAMES_ITS_AUTHOR.test(namesOf(attributes)) || (name === "div" && hasLine(style, "top"));
}

/** Whether a signature begins with an element. */
export function isSignature({ attributes }: HtmlElement): boolean {
  return SIGNATURE_NAME.test(namesOf(attributes));
}

/** Whether a signature begins behind an element. */
export function precedesSignature({ attributes }: HtmlElement): boolean {
  return SIGNATURE_FOLLOWS.test(namesOf(attributes));
}
