const MAX_DATE_CHARS = 200;
/** A date (RFC 5322 §3.3 and §4.3) without comments. A zone is required, or the time would depend on this machine. */
const DATE_TIME =
  /^(?:[a-z]{3}, ?)?\d{1,2} [a-z]{3} \d{4} \d{2}:\d{2}(?::\d{2})? (?:[+-]\d{4}|ut|gmt|utc|z|[ecmp][sd]t)$/i;

/** Returns the time in a Date field in unix seconds; undefined if it is not certain. */
export function readHeaderDate(value: string): number | undefined {
  const plain = value
    .slice(0, MAX_DATE_CHARS)
    .replaceAll(/\([^()]*\)/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
  if (!DATE_TIME.test(plain)) return undefined;
  const ms = Date.parse(plain.replace(/ utc?$/i, " GMT"));
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000);
}
