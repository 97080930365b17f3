import { normalForm } from "./normal-form.ts";
import { invalid } from "../errors.ts";
import { isLongerThan } from "./text-length.ts";

const MAX_TAGS = 20;
const MAX_TAG_CHARS = 100;
const TAG = /^[\p{L}\p{N}][\p{L}\p{N}_.-]*$/u;

/** Returns tags without a leading `#`; of several that differ only in case, the first. Throws `validation_error`. */
export function normalTags(given: string[], path = "body.tags"): string[] {
  const tags = new Map<string, string>();
  for (const [index, text] of given.entries()) {
    const tag = normalForm("NFC", text.trim()).replace(/^[#+]/, "");
    if (!TAG.test(tag) || isLongerThan(tag, MAX_TAG_CHARS))
      throw invalid(
        `${path}.${index}`,
        "invalid_tag",
        `A tag is one word of at most ${MAX_TAG_CHARS} letters, digits, hyphens, dots and underscores.`,
      );
    if (!tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag);
  }
  if (tags.size > MAX_TAGS) throw invalid(path, "too_many", `A message has at most ${MAX_TAGS} tags.`);
  return [...tags.values()];
}
