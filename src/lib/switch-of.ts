/** Returns what an option that is on or off says; undefined if its value is neither. */
export function switchOf(value: unknown): boolean | undefined {
  if (/^(true|yes)$/i.test(String(value))) return true;
  return /^(false|no)$/i.test(String(value)) ? false : undefined;
}
