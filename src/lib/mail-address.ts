const TAG_FORM = /^[a-z0-9_/-]{1,50}$/;

export interface Address {
  local_part: string;
  domain: string;
  /** What stands after the first `+`, or null. */
  tag: string | null;
}

/** Mail addresses are compared without regard to case here, local part included. */
export function splitAddress(address: string): Address {
  const at = address.lastIndexOf("@");
  const local = address.slice(0, at).toLowerCase();
  const plus = local.indexOf("+");
  return {
    local_part: plus === -1 ? local : local.slice(0, plus),
    domain: address.slice(at + 1).toLowerCase(),
    tag: plus === -1 ? null : local.slice(plus + 1),
  };
}

/** Returns the words of a `+tag`; none for a reply token (`c_…`) or where its form is not that of a tag. */
export function tagsOf({ tag }: Address): string[] {
  if (tag === null || tag.startsWith("c_")) return [];
  return [...new Set(tag.split("+"))].filter((word) => TAG_FORM.test(word));
}

/** Dots at an end or side by side; what RFC 5321 §4.1.2 knows in quotes only, and some providers have given to people. */
const ODD_DOTS = /^\.|\.\.|\.$/;
const LETTERS = /^[\w!#$%&'*+\-/=?^`{|}~.]+$/;

/** An address whose local part needs quotes for its dots alone, without them; any other as it is. */
export function withoutQuotes(address: string): string {
  const at = address.lastIndexOf("@");
  const local = address.slice(1, Math.max(1, at - 1));
  return address.startsWith('"') && address.charAt(at - 1) === '"' && hasOddDots(local)
    ? local + address.slice(at)
    : address;
}

/** Quotes a local part that has such dots, for SMTP commands: other servers may refuse it without quotes. */
export function withQuotes(address: string): string {
  const at = address.lastIndexOf("@");
  const local = address.slice(0, Math.max(0, at));
  return hasOddDots(local) ? `"${local}"${address.slice(at)}` : address;
}

function hasOddDots(local: string): boolean {
  return ODD_DOTS.test(local) && LETTERS.test(local);
}
