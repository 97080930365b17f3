import { asRead } from "./as-read.ts";

/** An address of a person in words for people, wherever it stands there. */
interface Written {
  /** In small letters, without the marks around it. */
  address: string;
  /** As programs have it in an address: what stands before it may be a name or a mark. */
  shown: string;
}

/** Longer ones are none (RFC 5321 §4.5.3.1). */
const MAX_LOCAL_CHARS = 64;
const MAX_DOMAIN_CHARS = 255;
const LOCAL_CHAR = /[\p{L}\p{N}._%+-]/u;
const DOMAIN = /^[\p{L}\p{N}.-]+/u;
/** Its last label has no digits, or is in A-labels. */
const HAS_ENDING = /^[^.].*\.(?:\p{L}{2,63}|xn--[a-z0-9-]{2,59})$/iu;
/** What stands behind an `@` in the name of a file: `icon@2x.png`. */
const FILE = /\.(?:png|jpe?g|gif|webp|svg|ico|pdf|css|m?js|tsx?|json|html?|txt|csv|xml)$/i;
/** The address of a repository: `git@example.org:team/site.git`. */
const IN_REPOSITORY = /^:[\w~-][\w./~-]*/;

/** Whether a text may have a mail address, in any form that programs read. */
export function mayHaveAddress(text: string): boolean {
  return /[@%&\\]|=\?|\P{ASCII}/u.test(text);
}

/** Returns the mail addresses of a text, as it stands and as programs read it. */
export function addressesIn(text: string): Written[] {
  const read = asRead(text);
  return read === text ? addressesOf(text) : [...addressesOf(text), ...addressesOf(read)];
}

function addressesOf(text: string): Written[] {
  const found: Written[] = [];
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    const start = startOf(text, at);
    const [domain = ""] = DOMAIN.exec(text.slice(at + 1, at + 1 + MAX_DOMAIN_CHARS)) ?? [];
    const host = withoutMarks(domain);
    if (start === at || !HAS_ENDING.test(host) || FILE.test(host)) continue;
    const shown = text.slice(start, at + 1 + host.length);
    const is_repository =
      shown.startsWith("git@") && IN_REPOSITORY.test(text.slice(at + 1 + host.length, at + 60 + host.length));
    if (!is_repository) found.push({ address: shown.toLowerCase(), shown });
  }
  return found;
}

/** A host without the marks behind it. */
function withoutMarks(domain: string): string {
  let end = domain.length;
  while (end > 0 && /[.-]/.test(domain.charAt(end - 1))) end -= 1;
  return domain.slice(0, end);
}

/** Where the name before an `@` begins. */
function startOf(text: string, at: number): number {
  let start = at;
  while (start > 0 && at - start < MAX_LOCAL_CHARS && LOCAL_CHAR.test(text.charAt(start - 1))) start -= 1;
  return start;
}

/** Texts whose addresses are remembered: a run asks about the same ones again and again. */
const MAX_KNOWN = 2;
const known = new Map<string, ReadonlySet<string>>();

/** Returns the addresses that stand in a text just so: in no form that only programs read, as a model could have written it. */
export function addressesReadIn(text: string): ReadonlySet<string> {
  const addresses = known.get(text) ?? new Set(addressesOf(text).map(({ address }) => address));
  known.delete(text);
  known.set(text, addresses);
  for (const old of known.keys()) if (known.size > MAX_KNOWN) known.delete(old);
  return addresses;
}
