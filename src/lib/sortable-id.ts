const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";
const CHARS = 26;
/** Bits of a UUID of version 7 behind its milliseconds. */
const OTHER_BITS = 80n;

/** A UUID of version 7 in 26 letters and digits (Crockford's base 32): in order of time, like itself. */
export function sortableId(id: string): string {
  return lettersOf(BigInt(`0x${id.replaceAll("-", "")}`));
}

/** A lower bound of those that were made in this second or later. */
export function firstSortableIdAt(second: number): string {
  return lettersOf(BigInt(second * 1_000) << OTHER_BITS);
}

function lettersOf(number: bigint): string {
  let rest = number;
  let text = "";
  for (let at = 0; at < CHARS; at += 1) {
    text = (LETTERS[Number(rest & 31n)] ?? "") + text;
    rest >>= 5n;
  }
  return text;
}
