import { expect, test } from "bun:test";
import { subtractSpans } from "../../src/lib/spans.ts";

const BYTES = 40;

/** As a text with a mark for each byte. */
function drawn(spans: { offset: number; size: number }[]): boolean[] {
  return Array.from({ length: BYTES }, (_, byte) =>
    spans.some(({ offset, size }) => byte >= offset && byte < offset + size),
  );
}

/** The same numbers each time. */
let state = 1;
function random(below: number): number {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
  return Math.floor((state / 2_147_483_648) * below);
}

function some(count: number) {
  return Array.from({ length: random(count) }, () => {
    const offset = random(BYTES);
    return { offset, size: random(Math.min(12, BYTES - offset)) };
  });
}

test("leaves what the others do not cover, each byte once, whatever overlaps", () => {
  for (let round = 0; round < 3_000; round += 1) {
    const spans = some(6);
    const others = some(6).sort((one, other) => one.offset - other.offset);
    const [wanted, covered] = [drawn(spans), drawn(others)];
    const left = subtractSpans(spans, others);
    expect({ spans, others, left: drawn(left) }).toEqual({
      spans,
      others,
      left: wanted.map((is, byte) => is && !covered[byte]),
    });
    expect(left.reduce((sum, { size }) => sum + size, 0)).toBe(drawn(left).filter(Boolean).length);
    expect(left.every(({ size }) => size > 0)).toBe(true);
  }
});
