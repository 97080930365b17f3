import { urlOf } from "../../lib/web-address.ts";
import { isItsAddress, type Link } from "./html-links.ts";
import type { HtmlElement } from "./html-style.ts";

/** Attributes by which something is loaded or opened. That of a link has words, and is looked at with them. */
const LEADING =
  /^(?:src|srcset|imagesrcset|lowsrc|dynsrc|poster|background|data|action|formaction|href|xlink:href|ping|longdesc|cite|onclick|data-(?:url|href|link|src))$/;
/** These say of a whole page where its names, its style and its addresses come from. */
const OF_PAGE = new Set(["html", "head", "base", "link", "meta", "style", "script", "a"]);
/** An address on the web; without a scheme it has that of the page around it. */
const WEB = /(?:https?|ftps?):[^\s"'<>()]+|(?<![^\s"'(,;])[/\\]{2}[^\s"'<>()/\\][^\s"'<>()]*/i;
const LOADS = /url\s*\(/i;
/** Where mail programs and virus scanners keep the pictures that they put into mails by themselves. */
const PICTURES_OF_PROGRAMS =
  /^https:\/\/(?:fonts\.gstatic\.com\/s\/e\/|mail\.google\.com\/mail\/e\/|[a-z0-9-]{1,30}\.avcdn\.net\/|ipmcdn\.avast\.com\/|res\.(?:cdn|public\.onecdn)\.(?:office\.net|static\.microsoft)\/)/i;

/**
 * The addresses on the web that an element leads to or loads something from. A page that a program has shared may stand in
 * a mail by them alone: as a picture, in a map, as a button.
 */
export function leadsOf({ name, attributes }: HtmlElement): string[] {
  if (OF_PAGE.has(name)) return [];
  return Object.entries(attributes).flatMap(([attribute, value]) => {
    if (!LEADING.test(attribute) && !(attribute === "style" && LOADS.test(value))) return [];
    const address = webAddress(value);
    return address === undefined || PICTURES_OF_PROGRAMS.test(address) ? [] : [address];
  });
}

const MAX_CHARS = 4_000;

/** Where a link leads whose words, if there are any, are not its address. */
export function leadOf(link: Pick<Link, "href" | "shown">): string[] {
  const address = isItsAddress(link) ? undefined : webAddress(link.href);
  return address === undefined ? [] : [address];
}

/** So many tell as much as all. */
const MAX_LEADS = 100;

export function addLeads(leads: string[], more: string[]): void {
  leads.push(...more.slice(0, MAX_LEADS - leads.length));
}

/** The first address on the web in a value, as browsers read it. */
function webAddress(value: string): string | undefined {
  const found = WEB.exec(value.slice(0, MAX_CHARS).replaceAll(/[\t\r\n]/g, ""))?.[0];
  if (found === undefined) return undefined;
  const address = found.replace(/^[/\\]{2}/, "https://");
  return urlOf(address)?.href ?? address;
}
