import { invalid } from "../../errors.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { isLongerThan } from "../../lib/text-length.ts";

/** Notes of a caller on a message, to find it again. Nothing here reads them, and no model does. */
export type Metadata = Record<string, string>;

const MAX_PAIRS = 16;
const MAX_VALUE_CHARS = 512;
/** A key has no colon, which ends it where pairs are looked for. */
const KEY = /^[A-Za-z0-9_.-]{1,64}$/;
const KEY_WORDS = "A key has 1 to 64 letters, digits, dots, hyphens and underscores.";

/** Throws `validation_error` for too many pairs, a bad key or a long value; the fault names the pair by its path. */
export function refuseBadMetadata(metadata: Metadata): void {
  const pairs = Object.entries(metadata);
  if (pairs.length > MAX_PAIRS)
    throw invalid("body.metadata", "too_many", `There may be at most ${MAX_PAIRS} pairs.`);
  if (pairs.some(([key]) => !KEY.test(key))) throw invalid("body.metadata", "invalid_key", KEY_WORDS);
  const long = pairs.find(([, value]) => isLongerThan(value, MAX_VALUE_CHARS));
  if (long)
    throw invalid(
      `body.metadata.${long[0]}`,
      "too_long",
      `A value must have at most ${MAX_VALUE_CHARS} characters.`,
    );
}

export function metadataOf({ metadata }: { metadata: string }): Metadata {
  return storedJson<Metadata>(metadata, {});
}

interface Pair {
  key: string;
  value: string;
}

/** The pair that a list is filtered by: `KEY:VALUE`. Throws `validation_error`. */
export function pairIn(filter: string): Pair {
  const colon = filter.indexOf(":");
  const key = filter.slice(0, Math.max(colon, 0));
  if (!KEY.test(key))
    throw invalid(
      "query.metadata",
      "invalid_pair",
      `Write it as KEY:VALUE, such as order:4711. ${KEY_WORDS}`,
    );
  return { key, value: filter.slice(colon + 1) };
}
