import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseAddressList } from "../../src/mail/reading/address-list.ts";
import {
  decodeWords,
  fromMailbox,
  mailboxes,
  MAX_HEADER_BYTES,
  MAX_HEADER_LINES,
  messageIds,
  readHeaders,
  receivedCount,
} from "../../src/mail/reading/headers.ts";
import { ownMs } from "../support/own-time.ts";

const read = (text: string, encoding: BufferEncoding = "utf8") => readHeaders(Buffer.from(text, encoding));
const author = (...from: string[]) =>
  fromMailbox(read(`${from.map((value) => `From: ${value}\r\n`).join("")}\r\n`));

describe("header block", () => {
  test("gives fields by name in any case, in order, and where the body starts", () => {
    const raw = "Received: one\r\nSubject: Hi\r\nRECEIVED: two\r\n\r\nFrom: not@a.field\r\n";
    const headers = read(raw);
    expect(headers.get("subject")).toBe("Hi");
    expect(headers.get("SUBJECT")).toBe("Hi");
    expect(headers.all("Received")).toEqual(["one", "two"]);
    expect(receivedCount(headers)).toBe(2);
    expect(headers.get("from")).toBeUndefined();
    expect(raw.slice(headers.body_offset)).toBe("From: not@a.field\r\n");
    expect(headers.size).toBe(headers.body_offset);
  });

  test("unfolds values and keeps the white space of the fold", () => {
    expect(read("Subject: one\r\n two\r\n\tthree\r\n\r\n").get("subject")).toBe("one two three");
  });

  test("ends at the first empty line whatever its line end", () => {
    for (const [raw, body] of [
      ["A: b\n\nbody", "body"],
      ["A: b\r\n\nbody", "body"],
      ["A: b\n\r\nbody", "body"],
      ["\r\nA: b", "A: b"],
      ["\nA: b", "A: b"],
      ["A: b\r\n", ""],
      ["A: b", ""],
      ["", ""],
    ] as const) {
      expect(raw.slice(read(raw).body_offset)).toBe(body);
    }
  });

  test("sees a field however its colon is set off", () => {
    for (const raw of ["From: a@b.test", "From : a@b.test", "From\r\n : a@b.test", "fRoM\t:a@b.test"]) {
      expect(read(`X: 1\r\n${raw}\r\n\r\n`).all("from")).toEqual(["a@b.test"]);
    }
  });

  test("takes a line that opens no field for a part of the one above", () => {
    const headers = read("X: 1\r\n\u00a0From: evil@b.test\r\nnonsense line\r\nFrom: a@b.test\r\n\r\n");
    expect(headers.all("from")).toEqual(["a@b.test"]);
    expect(headers.get("x")).toContain("nonsense line");
  });

  test("has no white space but SP and HTAB", () => {
    expect(read("Subject: \t \u00a0x\u00a0 \r\n\r\n").get("subject")).toBe("\u00a0x\u00a0");
    expect(author("<\u00a0ann@example.com>")).toMatchObject({ ok: false });
    expect(author("\u00a0ann@example.com")).toMatchObject({ ok: false });
    expect(author("ann\u2003<ann@example.com>")).toMatchObject({ ok: true, name: "ann\u2003" });
  });

  test("reads UTF-8 as such and anything else as Latin-1", () => {
    expect(read("Subject: grüße\r\n\r\n").get("subject")).toBe("grüße");
    expect(read("Subject: gr\xfc\xdfe\r\n\r\n", "latin1").get("subject")).toBe("grüße");
  });

  test("turns control characters and separators into spaces", () => {
    expect(read("Subject: a\rb\0c\r\n\r\n").get("subject")).toBe("a b c");
    expect(read("Subject: a\u0085b\u2028c\u2029d\vX\r\n\r\n").get("subject")).toBe("a b c d X");
  });

  test("says when a block is over the limits, and still gives its true size", () => {
    expect(read(`A: ${"x".repeat(MAX_HEADER_BYTES - 7)}\r\n\r\n`).complete).toBe(true);
    const large = read(`A: ${"x".repeat(MAX_HEADER_BYTES)}\r\nB: c\r\n\r\nbody`);
    expect(large.complete).toBe(false);
    expect(large.size).toBe(MAX_HEADER_BYTES + 13);
    expect(read(`${"A: b\r\n".repeat(MAX_HEADER_LINES)}\r\n`).complete).toBe(true);
    expect(read(`${"A: b\r\n".repeat(MAX_HEADER_LINES + 1)}\r\n`).complete).toBe(false);
  });

  test("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (raw) => {
        const headers = readHeaders(raw);
        expect(headers.body_offset).toBeLessThanOrEqual(raw.length);
        expect(typeof fromMailbox(headers).ok).toBe("boolean");
      }),
    );
  });

  test("never throws on texts made of what headers are made of", () => {
    const parts = fc.constantFrom(
      "From",
      ":",
      " ",
      "\r\n",
      "\n",
      "<",
      ">",
      "(",
      ")",
      '"',
      "\\",
      "@",
      "a",
      ".b",
      ",",
      ";",
      "=?utf-8?q?",
      "?=",
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 60 }), (texts) => {
        const text = texts.join("");
        expect(typeof fromMailbox(read(`From: ${text}\r\n\r\n`)).ok).toBe("boolean");
        expect(decodeWords(text)).toBeString();
        expect(messageIds(text)).toBeArray();
      }),
    );
  });
});

describe("author", () => {
  test.each([
    ["ann@example.com", "ann@example.com", ""],
    ["Ann <ann@example.com>", "ann@example.com", "Ann"],
    ["<ann@example.com>", "ann@example.com", ""],
    ['"Ann, of Ex." <Ann@EXAMPLE.com>', "ann@example.com", "Ann, of Ex."],
    ["ann@example.com (Ann (the) boss)", "ann@example.com", ""],
    ["Ann (work) <ann@example.com> (home)", "ann@example.com", "Ann"],
    ['"owner@x.test" <evil@y.test>', "evil@y.test", "owner@x.test"],
    ['"owner@x.test\\" <evil@y.test>" <real@z.test>', "real@z.test", 'owner@x.test" <evil@y.test>'],
    ["=?utf-8?q?owner=40x.test?= <evil@y.test>", "evil@y.test", "owner@x.test"],
    ["=?utf-8?b?PG93bmVyQHgudGVzdD4=?= <evil@y.test>", "evil@y.test", "<owner@x.test>"],
    ["ann@example.com <ann@example.com>", "ann@example.com", "ann@example.com"],
    ["'ann@example.com' <Ann@example.com>", "ann@example.com", "'ann@example.com'"],
    ["Grüße <ann@bücher.test>", "ann@xn--bcher-kva.test", "Grüße"],
    ["ann+tag@sub.example.co.uk", "ann+tag@sub.example.co.uk", ""],
    ["jürgen@example.com", "jürgen@example.com", ""],
    ["Ann\r\n <ann@example.com>", "ann@example.com", "Ann"],
    ["< ann@example.com >", "ann@example.com", ""],
    ["ann@localhost", "ann@localhost", ""],
    ["a..b@c.test", "a..b@c.test", ""],
    ["Ann <.ann.@c.test>", ".ann.@c.test", "Ann"],
    ['"a..b"@c.test', "a..b@c.test", ""],
    ['"A, B" <"a..b."@C.test>', "a..b.@c.test", "A, B"],
    ['"a..b"@c.test <a..b@c.test>', "a..b@c.test", '"a..b"@c.test'],
  ])("reads %j", (value, address, name) => {
    expect(author(value)).toEqual({ ok: true, address, name });
  });

  test.each([
    ["two mailboxes", "a@b.test, c@d.test"],
    ["one mailbox twice", "a@b.test, a@b.test"],
    ["a mailbox hidden behind another", "a@b.test <c@d.test>"],
    ["two addresses in angle brackets", "<a@b.test> <c@d.test>"],
    ["words after the address", "<a@b.test> c@d.test"],
    ["an address beside a word", "Ann a@b.test"],
    ["a group", "Friends: a@b.test;"],
    ["an empty group", "undisclosed-recipients:;"],
    ["a group that is not closed", "Friends: a@b.test"],
    ["no address", "Ann"],
    ["empty angle brackets", "Ann <>"],
    ["an empty value", ""],
    ["no domain", "ann@"],
    ["no local part", "@b.test"],
    ["two at signs", "a@b.test@c.test"],
    ["a quoted local part", '"a@b.test"@c.test'],
    ["a quoted local part in brackets", '<"a b"@c.test>'],
    ["a source route", "<@a.test:b@c.test>"],
    ["an address literal", "a@[192.0.2.1]"],
    ["an IP address", "a@192.0.2.1"],
    ["a comment inside the address", "a(x)@b.test"],
    ["a comment that is not closed", "a@b.test (oops"],
    ["a quoted text that is not closed", '"Ann <a@b.test>'],
    ["an angle bracket that is not closed", "Ann <a@b.test"],
    ["a stray closing bracket", "a@b.test>"],
    ["a space inside the address", "a @b.test"],
    ["an invisible character", "a\u200b@b.test"],
    ["a text direction mark", "a\u202e@b.test"],
    ["a no-break space", "a\u00a0@b.test"],
    ["a zero byte", "a\0@b.test"],
    ["dots alone", "..@c.test"],
    ["a quoted local part that needs no quotes", '"a.b"@c.test'],
    ["quotes around half of a local part", 'a"..b"@c.test'],
    ["quotes for more than dots", '"a..b "@c.test'],
    ["quotes in quotes", '<"\\"a..b\\""@c.test>'],
    ["a quoted local part beside an address", '"a..b"@c.test <b@c.test>'],
    ["a blank behind a quoted local part", '"a..b" @c.test'],
    ["a no-break space beside dots", "a..\u00a0b@c.test"],
    ["an empty label", "a@b..test"],
    ["a root dot", "a@b.test."],
    ["a label with a hyphen first", "a@-b.test"],
    ["a slash in the domain", "a@b.test/c"],
    ["a local part over 64 octets", `${"a".repeat(65)}@b.test`],
    ["an address over 254 octets", `a@${"b".repeat(60)}.${"b.".repeat(100)}test`],
    ["over a thousand mailboxes", Array.from({ length: 1_001 }, (_, i) => `a${i}@b.test`).join(",")],
  ])("refuses %s", (_, value) => {
    const outcome = author(value);
    expect(outcome).toMatchObject({ ok: false });
    expect(outcome.ok ? "" : outcome.problem).toMatch(/^The From field .*[.]$/);
  });

  test("refuses a mail with no From field or with two", () => {
    expect(author()).toEqual({ ok: false, problem: "The mail has no From field." });
    expect(author("a@b.test", "a@b.test")).toMatchObject({
      problem: "The mail has more than one From field.",
    });
    expect(author("a@b.test", "")).toMatchObject({ problem: "The mail has more than one From field." });
    expect(fromMailbox(read("From: a@b.test\nFrom : c@d.test\n\n"))).toMatchObject({ ok: false });
  });

  test("refuses a header too large to know that there is one From field", () => {
    const raw = `From: a@b.test\r\nX: ${"x".repeat(MAX_HEADER_BYTES)}\r\nFrom: c@d.test\r\n\r\n`;
    expect(fromMailbox(read(raw))).toMatchObject({ problem: expect.stringContaining("too large") });
  });

  test("an address of marks that pile up on one letter is refused at once, and quoted in short", () => {
    const marks = `a${"\u0315\u0300\u05ae".repeat(9_000)}`;
    const started = ownMs();
    for (const address of [`${marks}@a.test`, `a@${marks}.test`]) {
      const from = fromMailbox(read(`From: ${address}\r\n\r\n`));
      expect(from.ok ? "" : from.problem).toEndWith(" is not a mail address of a domain name.");
      expect(JSON.stringify(from).length).toBeLessThan(300);
    }
    expect(ownMs() - started).toBeLessThan(300);
  });

  test("costs little for the worst that fits in a header", () => {
    for (const text of [
      "(",
      ")",
      '"',
      "\\",
      "<",
      ",",
      ";",
      ":",
      "@",
      "a@b.c,",
      '"a" ',
      ".",
      "=?a?q?",
      "(\\",
    ]) {
      const headers = read(`From: ${text.repeat(Math.floor(60_000 / text.length))}\r\n\r\n`);
      const started = ownMs();
      fromMailbox(headers);
      decodeWords(headers.get("from") ?? "");
      expect(ownMs() - started).toBeLessThan(250);
    }
  });
});

describe("address lists", () => {
  test("take no letter for one of ASCII that it is not", () => {
    const read = (text: string) => parseAddressList(text);
    for (const local of ["\u212Aate", "k\u212A", "\u212A"])
      expect(read(`${local}@example.com`).ok).toBe(false);
    expect(read("kate@example.com, k\u00E4te@example.com, \u00C5sa@example.com")).toMatchObject({
      ok: true,
      mailboxes: [
        { address: "kate@example.com" },
        { address: "k\u00E4te@example.com" },
        { address: "\u00E5sa@example.com" },
      ],
    });
  });

  test("hold several mailboxes, groups and empty places", () => {
    expect(mailboxes('a@b.test, "C, D" <c@d.test>,, Friends: e@f.test, <g@h.test>; , i@j.test')).toEqual({
      ok: true,
      groups: 1,
      mailboxes: [
        { address: "a@b.test", name: "" },
        { address: "c@d.test", name: "C, D" },
        { address: "e@f.test", name: "" },
        { address: "g@h.test", name: "" },
        { address: "i@j.test", name: "" },
      ],
    });
    expect(mailboxes("undisclosed-recipients:;")).toEqual({ ok: true, groups: 1, mailboxes: [] });
    expect(mailboxes("A: b@c.test; D: e@f.test;")).toMatchObject({ ok: true, groups: 2 });
  });

  test("refuse groups inside groups and separators out of place", () => {
    for (const value of ["A: B: c@d.test;;", "a@b.test; c@d.test", ": a@b.test;", "<a@b.test>: c@d.test;"]) {
      expect(mailboxes(value)).toMatchObject({ ok: false });
    }
  });
});

describe("encoded words", () => {
  test.each([
    ["plain", "plain"],
    ["=?utf-8?q?Gr=C3=BC=C3=9Fe_an_alle?=", "Grüße an alle"],
    ["=?UTF-8?B?R3LDvMOfZQ==?= today", "Grüße today"],
    ["=?iso-8859-1?Q?caf=E9?=", "café"],
    ["=?utf-8*en?q?tagged?=", "tagged"],
    ["=?utf-8?q?a?= =?utf-8?q?b?=", "ab"],
    ["=?utf-8?q?a?=\r\n =?iso-8859-1?q?b?=", "ab"],
    ["=?utf-8?q?a?= and =?utf-8?q?b?=", "a and b"],
    ["=?utf-8?b?w7w=?= =?utf-8?q?=C3?= =?utf-8?q?=BC?=", "üü"],
    ["=?iso-2022-jp?B?GyRCJDMbKEI=?=", "こ"],
    ["=?no-such-charset?q?kept?= x", "=?no-such-charset?q?kept?= x"],
    ["=?utf-8?q?a=0D=0ABcc:_x?=", "a  Bcc: x"],
    ["=?utf-8?q?a=C2=85b=E2=80=A8c=E2=80=A9d=0B?=", "a b c d "],
    ["=?utf-8?q?broken", "=?utf-8?q?broken"],
    ["=?utf-8?x?a?=", "=?utf-8?x?a?="],
  ])("decode %j", (value, text) => {
    expect(decodeWords(value)).toBe(text);
  });
});

describe("message ids", () => {
  test("come without brackets, in order, and from nothing else", () => {
    expect(messageIds("<a@b> (comment) <c@d>\t<e@f>")).toEqual(["a@b", "c@d", "e@f"]);
    expect(messageIds("Your message of Monday")).toEqual([]);
    expect(messageIds("<<a@b>> <> < c@d > <e")).toEqual(["a@b"]);
  });
});
