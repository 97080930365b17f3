const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";
const CHARS = 26;

/** A UUID of version 7 in 26 letters and digits (Crockford's base 32): in order of time, like itself. */
export function sortableId(ms: number): string {
  let rest = BigInt(`0x${Bun.randomUUIDv7("hex", ms).replaceAll("-", "")}`);
  let text = "";
  for (let at = 0; at < CHARS; at += 1) {
    text = (LETTERS[Number(rest & 31n)] ?? "") + text;
    rest >>= 5n;
  }
  return text;
}
