import { cutSlug, slugOf } from "../../lib/slug.ts";

/** The longest name: the command grammar takes it with a number behind it. */
const MAX_NAME_CHARS = 60;

/** The name of a tool server with that label; the newer of two with the same label gets a number. */
export function toolServerName(label: string): string {
  const slug = cutSlug(slugOf(label), MAX_NAME_CHARS);
  return /^[a-z]/.test(slug) ? slug : cutSlug(`server-${slug}`, MAX_NAME_CHARS);
}
