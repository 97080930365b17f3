import { expect, test } from "bun:test";
import { createGathering, type Sent, sendInPieces } from "../../src/lib/pieces.ts";
import { MB } from "../../src/lib/sizes.ts";

/** What arrives of messages that are sent one after the other, and the lengths of their pieces. */
async function arrived(...messages: [message: unknown, buffers: ArrayBuffer[]][]) {
  const got: unknown[] = [];
  const pieces: number[] = [];
  const gather = createGathering((message) => got.push(message));
  for (const [message, buffers] of messages)
    await sendInPieces(
      (sent: Sent) => {
        if ("piece" in sent) pieces.push(sent.piece.byteLength);
        gather(structuredClone(sent));
      },
      message,
      buffers,
    );
  return { got, pieces };
}

function bytes(length: number, seed: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length).map((_byte, at) => (at * 7 + seed) % 251);
}

test("large arrays of bytes arrive piece by piece, where they stood", async () => {
  const [one, two] = [bytes(2.5 * MB, 1), bytes(MB + 1, 2)];
  const message = { mail: { files: [{ bytes: one, name: "a" }, { bytes: two }], at: 3 } };
  const { got, pieces } = await arrived([message, [one.buffer, two.buffer]], ["next", []]);
  expect(got).toEqual([message, "next"]);
  expect(pieces).toEqual([MB, MB, MB / 2, MB, 1]);
  // The sender's own are left as they are.
  expect(message.mail.files[0]?.bytes).toBe(one);
});

test("a message that is nothing but bytes arrives", async () => {
  const large = bytes(2 * MB + 1, 5);
  expect((await arrived([large, [large.buffer]])).got).toEqual([large]);
});

test("a part of a buffer arrives without the rest of it", async () => {
  const whole = bytes(4 * MB, 3);
  const [part, large] = [whole.subarray(5, 15), whole.subarray(MB, 3 * MB)];
  const { got } = await arrived([{ part, large }, [whole.buffer]]);
  const [message] = got as { part: Uint8Array; large: Uint8Array }[];
  expect(message).toEqual({ part, large });
  expect(message?.part.buffer.byteLength).toBe(10);
});

test.each<[string, unknown]>([
  ["nothing", undefined],
  ["words", "words"],
  ["an object with what is no plain one in it", { at: new Date(0), list: new Map([["a", 1]]), none: null }],
  [
    "a message that looks like one of ours",
    { message: null, holes: [{ path: ["a"], bytes: 3 }], piece: "x" },
  ],
  ["names of prototypes", JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}')],
])("%s arrives as it was", async (_what, message) => {
  const large = bytes(MB + 1, 4);
  const { got } = await arrived([message, []], [{ message, large }, [large.buffer]]);
  expect(got).toEqual([message, { message, large }]);
});
