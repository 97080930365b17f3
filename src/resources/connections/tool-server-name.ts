import { cutSlug, slugOf } from "../../lib/slug.ts";

/** As the command grammar takes it, with room for a number. */
const MAX_NAME_CHARS = 60;

/** What a tool server of that label is called; the newer of two with the same label gets a number. */
export function toolServerName(label: string): string {
  const slug = cutSlug(slugOf(label), MAX_NAME_CHARS);
  return /^[a-z]/.test(slug) ? slug : cutSlug(`server-${slug}`, MAX_NAME_CHARS);
}
