import { expect, test } from "bun:test";
import { BadAnswerError, createAnswerReader } from "../../src/lib/http-answer.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const LIMIT = 1_000;

/** How much of an endless answer is taken before there is enough of it. */
function taken(start: string, more: string): number {
  const reader = createAnswerReader(LIMIT);
  let bytes = 0;
  for (let next = start; bytes < 10_000_000; next = more) {
    bytes += next.length;
    if (reader.push(Buffer.from(next))) return bytes;
  }
  return bytes;
}

test.each([
  ["a trailer", `${CHUNKED}0\r\nx: `, "a".repeat(4_096)],
  ["chunks of one byte with long extensions", CHUNKED, `1;x=${"e".repeat(3_000)}\r\na\r\n`],
])("of an answer with %s without end no more is taken than of any other", (_name, start, more) => {
  expect(taken(start, more)).toBeLessThan(100_000);
});

test("a status that is only on the way cannot be told for ever", () => {
  expect(() => taken("HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n")).toThrow(
    BadAnswerError,
  );
});

test("a head with a large body behind it in one piece is read", () => {
  const reader = createAnswerReader(100_000);
  const head = "HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n";
  expect(reader.push(Buffer.from(head + "b".repeat(60_000)))).toBe(true);
  expect(reader.answer()?.body).toHaveLength(60_000);
});
