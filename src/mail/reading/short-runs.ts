import { isBlank } from "./header-block.ts";

const [CR, LF] = [0x0d, 0x0a];
/** A line has at most 998 octets (RFC 5322 §2.1.1), so that nothing honest has a longer run of blanks. */
const MOST = 1_000;

/**
 * Cuts longer runs of blanks in the body of a mail down to one: the decoder of quoted-printable takes the square of a run, and cannot
 * be ended meanwhile. Returns the mail itself where there is none.
 */
export function withShortRuns(raw: Uint8Array): Uint8Array {
  const kept: Uint8Array[] = [];
  let done = 0;
  // A run of more than so many octets has one at each so many.
  for (let at = bodyStart(raw) + MOST; at < raw.length; at += MOST) {
    if (!isBlank(raw[at] ?? 0)) continue;
    let [from, to] = [at, at + 1];
    while (from > done && isBlank(raw[from - 1] ?? 0)) from -= 1;
    while (isBlank(raw[to] ?? 0)) to += 1;
    if (to - from > MOST) {
      kept.push(raw.subarray(done, from + 1));
      done = to;
    }
    at = to;
  }
  return done === 0 ? raw : new Uint8Array(Buffer.concat([...kept, raw.subarray(done)]));
}

/** Returns where the first empty line is, which ends the header; the end of a mail that is all header. */
function bodyStart(raw: Uint8Array): number {
  for (let at = raw.indexOf(LF); at >= 0; at = raw.indexOf(LF, at + 1)) {
    const next = raw[at + 1] === CR ? at + 2 : at + 1;
    if (raw[next] === LF) return next;
  }
  return raw.length;
}
