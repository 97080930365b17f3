/** More characters than any slug needs. */
const MAX_READ_CHARS = 500;

/**
 * Returns a text as lower-case letters, digits and single hyphens: `Ångström & Über` becomes `angstrom-uber`. Returns
 * an empty string if nothing of it can be written that way.
 */
export function slugOf(text: string): string {
  return normalForm("NFKD", text.slice(0, MAX_READ_CHARS))
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
}

/** Returns the first characters of a slug, without a hyphen at the end. */
export function cutSlug(slug: string, max_chars: number): string {
  return slug.slice(0, max_chars).replace(/-$/, "");
}
import { normalForm } from "./normal-form.ts";
