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

/** The words of a `+tag`; none of a reply token (`c_…`) or of what is no tag by its form. */
export function tagsOf({ tag }: Address): string[] {
  if (tag === null || tag.startsWith("c_")) return [];
  return [...new Set(tag.split("+"))].filter((word) => TAG_FORM.test(word));
}
