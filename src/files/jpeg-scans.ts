/** The second bytes of markers (ITU-T T.81, Table B.1). */
const START_OF_FRAME = 0xc0;
const [FIRST_RESTART, START_OF_IMAGE, END_OF_IMAGE, START_OF_SCAN] = [0xd0, 0xd8, 0xd9, 0xda];
const FILL = 0xff;

/**
 * Counts the scans of a JPEG as its decoder meets them: a progressive picture may have any number, of a few bytes each, for every one of
 * which the decoder goes through all of the picture again. Stops counting once there are more than `most`.
 */
export function countScans(bytes: Uint8Array, most: number): number {
  let scans = 0;
  let at = 0;
  while (at < bytes.length && scans <= most) {
    const marker = bytes[at] === FILL ? bytes[at + 1] : undefined;
    if (marker === END_OF_IMAGE) break;
    if (marker === START_OF_SCAN) scans += 1;
    // A segment is skipped as a whole: what looks like a marker in a table or in a thumbnail is none.
    at += isSegment(marker) ? 2 + lengthAt(bytes, at + 2) : 1;
  }
  return scans;
}

/** Whether the marker has a length behind it (T.81 B.1.1.3); the data of a scan go on behind its segment. */
function isSegment(marker = 0): boolean {
  const is_alone = marker >= FIRST_RESTART && marker <= START_OF_IMAGE;
  return marker >= START_OF_FRAME && marker !== FILL && !is_alone;
}

function lengthAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
