const TAG_FORM = /^[a-z0-9_/-]{1,50}$/;

export interface Address {
  local_part: string;
  domain: string;
  /** What stands after the first `+`, or null. */
  tag: string | null;
}

/**
 * Splits an address into its parts, in lower case: mail addresses are compared without regard to case here, local part
 * included.
 */
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

/** Returns the words of a `+tag`; an empty list for a reply token (`c_…`) or a tag of another form. */
export function tagsOf({ tag }: Address): string[] {
  if (tag === null || tag.startsWith("c_")) return [];
  return [...new Set(tag.split("+"))].filter((word) => TAG_FORM.test(word));
}

/**
 * Dots at an end or side by side: RFC 5321 §4.1.2 allows them in a quoted local part only, but some providers have
 * issued such addresses.
 */
const ODD_DOTS = /^\.|\.\.|\.$/;
const LETTERS = /^[\w!#$%&'*+\-/=?^`{|}~.]+$/;

/** Returns an address without quotes if only its dots need them; any other unchanged. */
export function withoutQuotes(address: string): string {
  const at = address.lastIndexOf("@");
  const local = address.slice(1, Math.max(1, at - 1));
  return address.startsWith('"') && address.charAt(at - 1) === '"' && hasOddDots(local)
    ? local + address.slice(at)
    : address;
}

/**
 * Returns an address with its local part quoted if its dots need that, for SMTP commands: other servers may refuse it
 * otherwise.
 */
export function withQuotes(address: string): string {
  const at = address.lastIndexOf("@");
  const local = address.slice(0, Math.max(0, at));
  return hasOddDots(local) ? `"${local}"${address.slice(at)}` : address;
}

function hasOddDots(local: string): boolean {
  return ODD_DOTS.test(local) && LETTERS.test(local);
}
