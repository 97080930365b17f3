import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cardFileName, vcardOf } from "../../src/resources/inboxes/vcard.ts";
import { readVcard } from "../support/vcard.ts";

const ID = "0198c0ff-ee00-7000-8000-00000000cafe";
const ADDRESS = "reports-abcdefghjkmn@mw.test";
const cardOf = (label: string): string => vcardOf({ id: ID, label, address: ADDRESS });

describe("the card of an inbox", () => {
  test("says what it is, whose it is and how to write to it", () => {
    expect(cardOf("Reports")).toStartWith(
      [
        "BEGIN:VCARD",
        "VERSION:3.0",
        "N:Reports;;;;",
        "FN:Reports",
        `EMAIL;TYPE=INTERNET:${ADDRESS}`,
        "NOTE:Send or forward mail",
      ].join("\r\n"),
    );
    expect(cardOf("Reports")).toEndWith(`\r\nUID:urn:uuid:${ID}\r\nEND:VCARD\r\n`);
  });

  const LABELS: [claim: string, label: string, name: string][] = [
    ["what RFC 2426 escapes", String.raw`a,b;c\d:"e"`, String.raw`a,b;c\d:"e"`],
    ["several lines", "one\r\ntwo\nthree\rfour", "one\ntwo\nthree\nfour"],
    ["other control characters", "a\u0000\u0007b\tc", "a b c"],
    [
      "a property of its own",
      "x\r\nEMAIL:eve@example.net\r\nEND:VCARD",
      "x\nEMAIL:eve@example.net\nEND:VCARD",
    ],
    ["other scripts and emoji", "Büro 日本語 👩‍👩‍👧", "Büro 日本語 👩‍👩‍👧"],
    ["half of an emoji", "a\ud83e", "a\ufffd"],
    ["nothing", "", ADDRESS],
    ["nothing but white space", " \t ", ADDRESS],
  ];
  test.each(LABELS)("carries a label with %s", (_claim, label, name) => {
    const card = readVcard(Buffer.from(cardOf(label)));
    expect(card.get("FN")).toEqual([name]);
    expect(card.get("N")).toEqual([name, "", "", "", ""]);
    expect(card.get("EMAIL;TYPE=INTERNET")).toEqual([ADDRESS]);
    expect([...card.keys()]).toEqual(["VERSION", "N", "FN", "EMAIL;TYPE=INTERNET", "NOTE", "UID"]);
  });

  test("is read back by a strict parser whatever the label is, no line longer than 75 octets", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 120 }), (label) => {
        const card = readVcard(Buffer.from(cardOf(label)));
        const lines = label.trim().replaceAll(/\r\n?/g, "\n");
        const shown = lines.replaceAll(/[^\P{Cc}\n]+/gu, " ");
        expect(card.get("FN")).toEqual([label.trim() === "" ? ADDRESS : shown]);
      }),
    );
  });
});

test.each([
  ["Reports", "Reports.vcf"],
  ["a/b\\c:d", "a b c d.vcf"],
  ["../../etc/passwd", "etc passwd.vcf"],
  ['say "hi"', "say hi.vcf"],
  ["..", "inbox.vcf"],
  ["", "inbox.vcf"],
  ["\u202Egnp.exe\r\n", "gnp.exe.vcf"],
  ["Büro 👩‍👩‍👧", "Büro 👩‍👩‍👧.vcf"],
])("the file of %p is called %p", (label, filename) => {
  expect(cardFileName(label)).toBe(filename);
});
