/**
 * A text as lower-case letters, digits and single hyphens: `Ångström & Über` becomes `angstrom-uber`. Empty if
 * nothing of it can be written that way.
 */
export function slugOf(text: string): string {
  return text
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
}

/** Its first characters, never with a hyphen at the end. */
export function cutSlug(slug: string, max_chars: number): string {
  return slug.slice(0, max_chars).replace(/-$/, "");
}
