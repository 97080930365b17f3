import type { Declarations } from "./html-rules.ts";
import { hasLine, type HtmlElement, namesOf } from "./html-style.ts";

/** Class, id or name of elements in which mail programs wrap a quoted or forwarded mail. */
const QUOTE_NAME =
  /quot|forward|fwdmsg|fwd_|cite|gmail_attr|gmail_extra|appendonsend|reply[-_]?(content|section|header|mail)|reference-message|original-?(content|message)|_mailoriginal|zmail_extra|zwchr|airmail_on|__divider|__headers|olk_src_body|qmbox|edo-original|alimail_/;
const QUOTE_ELEMENTS = new Set(["blockquote", "hr", "includetail", "cite", "q", "fieldset", "details"]);
/** Elements that hold a quote if they have a border at the top or left. */
const LINED = new Set(["div", "p", "table"]);
/** Elements that hold a quote if they have a border at the left only. */
const BARRED = new Set(["section", "article", "aside", "span", "td"]);
/** Elements that hold the attribution as well as the quote, so that the text above is the sender's. A bare blockquote never does. */
const NAMES_ITS_AUTHOR =
  /gmail_(quote|attr|extra)|appendonsend|divrplyfwdmsg|reference-message|yahoo_quoted|protonmail_quote|moz-(cite-prefix|forward)/;
/** Names of elements above a quote, not around it. */
const ATTRIBUTION_NAME = /moz-cite-prefix|gmail_attr|airmail_on/;
/** Name of an element around an attribution, its quote and the answers below. */
const AROUND_NAME = /gmail_quote/;
/** Names of elements around a signature; the last is by Avast and AVG, for their note. */
const SIGNATURE_NAME =
  /signature|moz-txt-sig|bloop_sign|mb_sig|_sig\b|zm-_id_-sgn|dab4fad8-2dd7-40bb-a1b8-4e2aa1f9fdf2/;
/** Names of elements above a signature, not around it: the dashes of Gmail, the line break of Apple Mail. */
const SIGNATURE_FOLLOWS = /gmail_signature_prefix|linebreakatbeginningofsignature/;

/** What an element is to a quote: the quote itself, its attribution, or what surrounds both and the answers below. */
export type QuotePart = "quote" | "attribution" | "around";

/** Returns what an element is to a quote; to be asked only about one of which `isQuote` is true. */
export function quotePartOf({ name, attributes }: HtmlElement): QuotePart {
  const names = namesOf(attributes);
  if (ATTRIBUTION_NAME.test(names)) return "attribution";
  return name !== "blockquote" && AROUND_NAME.test(names) ? "around" : "quote";
}

/** Returns whether a quote begins with an element, or with the separator line above it. */
export function isQuote({ name, attributes }: HtmlElement, style: Declarations): boolean {
  if (QUOTE_ELEMENTS.has(name)) return true;
  // Outlook draws a line above the header block of the mail it quotes and gives it no name; others draw one beside it.
  if (LINED.has(name) && (hasLine(style, "top") || hasLine(style, "left"))) return true;
  // A cell of the sender's own table has borders on both sides.
  if (BARRED.has(name) && hasLine(style, "left") && !hasLine(style, "right")) return true;
  return QUOTE_NAME.test(namesOf(attributes));
}

/** Returns whether the attribution of a quote is inside of the element. */
export function namesItsAuthor({ name, attributes }: HtmlElement, style: Declarations): boolean {
  if (QUOTE_ELEMENTS.has(name)) return false;
  return NAMES_ITS_AUTHOR.test(namesOf(attributes)) || (name === "div" && hasLine(style, "top"));
}

/** Returns whether a signature begins with an element. */
export function isSignature({ attributes }: HtmlElement): boolean {
  return SIGNATURE_NAME.test(namesOf(attributes));
}

/** Returns whether a signature begins behind an element. */
export function precedesSignature({ attributes }: HtmlElement): boolean {
  return SIGNATURE_FOLLOWS.test(namesOf(attributes));
}
