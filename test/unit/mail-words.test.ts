import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readHeaders } from "../../src/mail/reading/headers.ts";
import { readMailWords } from "../../src/inbound/mail-words.ts";

const FROM = "ada@example.com";
const DATE = "Mon, 1 Jun 2026 10:00:00 +0000";

function mailOf(body: Uint8Array): Uint8Array {
  const header = `From: <${FROM}>\r\nDate: ${DATE}\r\nSubject: Two  words\r\n\r\n`;
  return new Uint8Array([...Buffer.from(header), ...body]);
}

/** What the key was made with before: a database keeps keys for a year, and has to find them. */
function earlierKey(body: Uint8Array): string {
  const hash = createHash("sha256");
  for (const text of [FROM, DATE, "Two words"]) hash.update(`${text.replaceAll(/[ \t\r\n]+/g, "")}\n`);
  return hash
    .update(
      Buffer.from(body)
        .toString("latin1")
        .replaceAll(/[ \t\r\n]+/g, ""),
      "latin1",
    )
    .digest("hex");
}

const every_byte = Uint8Array.from({ length: 1_024 }, (_, at) => at % 256);
const bodies: [what: string, body: Uint8Array][] = [
  ["nothing", new Uint8Array()],
  ["every byte", every_byte],
  ["blanks alone", Buffer.from(" \t\r\n".repeat(50_000))],
  ["a blank at the end of a piece", Buffer.from(`${"x".repeat(65_535)} ${"y".repeat(65_536)}\r\nz`)],
  ["less than a piece behind a full one", Buffer.from(`${"x".repeat(65_536)}y`)],
  ["a long one in which every byte is", Buffer.concat(Array.from({ length: 300 }, () => every_byte))],
];

describe("a mail without a Message-ID is known again by the same key as in earlier versions", () => {
  test.each(bodies)("with %s as its body", (_what, body) => {
    const raw = mailOf(body);
    expect(readMailWords(raw, readHeaders(raw), FROM).dedupe_key).toBe(earlierKey(body));
  });

  test("which stays the one it is", () => {
    const raw = mailOf(Buffer.from("Buy milk.\r\n"));
    expect(readMailWords(raw, readHeaders(raw), FROM).dedupe_key).toBe(
      "7b8c76e0303f8f367e7e8954b169bc5bbdffc64a9b2a70b557bac0c710df7e66",
    );
  });
});

describe("a mail whose body is blank says what its subject does", () => {
  const hashOf = (body: string): string => {
    const raw = mailOf(Buffer.from(body, "latin1"));
    return readMailWords(raw, readHeaders(raw), FROM).body_hash;
  };
  const of_subject = createHash("sha256").update("Two words").digest("hex");

  test.each([
    ["none", ""],
    ["blanks of each kind", " \t\n\v\f\r\n"],
    ["a long one", `${" ".repeat(70_000)}\r\n`],
  ])("%s", (_what, body) => {
    expect(hashOf(body)).toBe(of_subject);
  });

  test.each([
    ["a byte below them", "\b"],
    ["a byte above them", "\x0e"],
    ["a letter behind one", " x"],
    ["a blank of Latin-1", "\xa0"],
    ["a stop behind many", `${" ".repeat(70_000)}.`],
  ])("it says nothing of the subject where there is %s", (_what, body) => {
    expect(hashOf(body)).toBe(createHash("sha256").update(Buffer.from(body, "latin1")).digest("hex"));
  });
});
