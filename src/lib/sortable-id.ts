const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";
const CHARS = 26;
/** Bits of a UUIDv7 behind its milliseconds. */
const OTHER_BITS = 80n;

/** Returns a UUIDv7 as 26 letters and digits (Crockford's base 32), which sort in order of time as well. */
export function sortableId(id: string): string {
  return base32Of(BigInt(`0x${id.replaceAll("-", "")}`));
}

/** Returns a lower bound of the sortable ids made in this unix second or later. */
export function firstSortableIdAt(second: number): string {
  return base32Of(BigInt(second * 1_000) << OTHER_BITS);
}

function base32Of(number: bigint): string {
  let rest = number;
  let text = "";
  for (let at = 0; at < CHARS; at += 1) {
    text = (LETTERS[Number(rest & 31n)] ?? "") + text;
    rest >>= 5n;
  }
  return text;
}
