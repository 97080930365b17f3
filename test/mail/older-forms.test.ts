import { afterAll, describe, expect, test } from "bun:test";
import { decodeWords } from "../../src/mail/reading/headers.ts";
import { createMailParser, type ParsedMail } from "../../src/mail/reading/parse.ts";
import { readTnef } from "../../src/mail/reading/tnef.ts";
import { takeUuencoded } from "../../src/mail/reading/uuencode.ts";
import { multipart, rawMail } from "../support/mails.ts";
import { ownMs } from "../support/own-time.ts";
import { attribute, tnef, type TnefParts } from "../support/tnef.ts";
import { uuencode } from "../support/uuencode.ts";

const parser = createMailParser();
afterAll(() => parser[Symbol.asyncDispose]());

async function read(raw: Uint8Array | string): Promise<ParsedMail> {
  const outcome = await parser.parse(typeof raw === "string" ? Buffer.from(raw) : raw);
  if (!outcome.ok) throw new Error(`${outcome.problem}: ${outcome.message}`);
  return outcome.mail;
}
const head = "From: ann@example.com\r\nMIME-Version: 1.0\r\n";
const names = ({ attachments }: ParsedMail): string[] => attachments.map(({ filename }) => filename);

describe("encoded words", () => {
  const jis = (text: string): string => {
    // 日本語 in JIS X 0208, two bytes each.
    const codes: Record<string, string> = { 日: "467c", 本: "4b5c", 語: "386c" };
    const bytes = Array.from(text, (letter) => codes[letter] ?? "").join("");
    return `=?ISO-2022-JP?B?${Buffer.from(`1b2442${bytes}1b2842`, "hex").toString("base64")}?=`;
  };
  test.each([
    ["one set, two words", `${jis("日")} ${jis("本語")}`, "日本語"],
    ["over three lines", `${jis("日")}\r\n ${jis("本")}\r\n ${jis("語")}`, "日本語"],
    ["cut within the run of letters", "=?iso-2022-jp?Q?=1B$BF|K?= =?iso-2022-jp?Q?=5C8l=1B(B?=", "日本語"],
    ["JIS X 0212", "=?iso-2022-jp-1?Q?=1B$(D0!=1B(B?=", "丂"],
    ["cp932", "=?cp932?B?g2WDWINn?=", "テスト"],
    ["cp936", "=?cp936?Q?=C4=E3?=", "你"],
    ["utf-7", "=?utf-7?Q?Fr+APY-sche?=", "Frösche"],
    ["utf-7 in two words, the run of the first not closed", "=?utf-7?Q?+APY?= =?utf-7?Q?APY?=", "öAPY"],
    ["a set of the last century", "=?cp437?Q?=81ber?=", "über"],
    ["Windows-1252 that is called ASCII", "=?us-ascii?Q?caf=E9_=96?=", "café –"],
    ["UTF-8 that is called unknown", "=?unknown-8bit?Q?caf=C3=A9?=", "café"],
  ])("%s", (_, value, text) => {
    expect(decodeWords(value)).toBe(text);
  });

  test("a set that nobody knows stays as it is written", () => {
    expect(decodeWords("=?x-none?q?a?= b")).toBe("=?x-none?q?a?= b");
  });

  test("never open a line of their own, whatever the set", () => {
    expect(decodeWords("=?utf-7?Q?a+AA0ACg-Bcc: x?= =?utf-7?Q?a+AA0ACg-Bcc:_x?=")).not.toMatch(/[\r\n]/);
  });
});

describe("texts that name no character set", () => {
  const text = (type: string, bytes: string): Promise<ParsedMail> =>
    read(Buffer.concat([Buffer.from(`${head}${type}\r\n`), Buffer.from(bytes, "latin1")]));
  test.each([
    ["none", ""],
    ["ASCII", "Content-Type: text/plain; charset=us-ascii\r\n"],
    ["no type at all", "X-Mailer: old\r\n"],
    ["a type without its second half", "Content-Type: text\r\n"],
    ["a type with an empty second half", "Content-Type: text/\r\n"],
  ])("%s: Windows-1252, or UTF-8 where it is that", async (_, type) => {
    const typed = `${type}Content-Transfer-Encoding: 8bit\r\n`;
    expect(await text(typed, "Say \x93hi\x94 to Zo\xeb, 5 \x80\r\n")).toMatchObject({
      new_text: "Say “hi” to Zoë, 5 €",
      warnings: [],
    });
    expect(await text(typed, Buffer.from("Zoë 世界").toString("latin1"))).toMatchObject({
      new_text: "Zoë 世界",
      warnings: [],
    });
  });

  test("UTF-8 by name stays that, and what is not is said", async () => {
    const mail = await text("Content-Type: text/plain; charset=utf-8\r\n", "Zo\xeb");
    expect(mail.new_text).toBe("Zo\uFFFD");
    expect(mail.warnings.join()).toContain('"utf-8"');
  });

  test("what stands in a field as it is", async () => {
    const raw = Buffer.from("From: a@b.org\r\nSubject: \x93Zo\xeb\x94 \x85\r\n\r\nhi", "latin1");
    expect((await read(raw)).subject).toBe("“Zoë” …");
  });
});

describe("file names as they are", () => {
  const named = async (disposition: string): Promise<string | undefined> => {
    const part = `Content-Type: application/pdf\r\nContent-Disposition: ${disposition}\r\n\r\nx`;
    const mail = await read(Buffer.from(head + multipart("mixed", "m", [part]), "latin1"));
    return mail.attachments[0]?.filename;
  };
  const utf8 = (text: string): string => Buffer.from(text).toString("latin1");
  test.each([
    ["UTF-8", `attachment; filename="${utf8("Übersicht 日本.pdf")}"`, "Übersicht 日本.pdf"],
    ["UTF-8 without quotes", `attachment; filename=${utf8("日本.pdf")}`, "日本.pdf"],
    ["UTF-8 where it should be escaped", `attachment; filename*=UTF-8''${utf8("ü")}.pdf`, "ü.pdf"],
    ["UTF-8 in pieces", `attachment; filename*0="${utf8("Ü")}"; filename*1="b.pdf"`, "Üb.pdf"],
    ["Windows-1252", 'attachment; filename="\xdcbersicht \x96 Mai.pdf"', "Übersicht – Mai.pdf"],
  ])("%s", async (_, disposition, name) => {
    expect(await named(disposition)).toBe(name);
  });
});

describe("a part whose border is never closed", () => {
  const pdf = "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF";
  const open = (kind: string, boundary: string, part: string): string =>
    `Content-Type: multipart/${kind}; boundary=${boundary}\r\n\r\n--${boundary}\r\n${part}`;
  const text = "Content-Type: text/plain\r\n\r\nAdd it up.";
  test.each([
    ["one", open("alternative", "in", text), ["a.pdf"]],
    ["two, one in the other", open("related", "mid", open("alternative", "in", text)), ["a.pdf"]],
    [
      "the inner one of two",
      `${open("related", "mid", open("alternative", "in", text))}\r\n--mid\r\nContent-Type: image/png\r\n\r\npng\r\n--mid--`,
      ["attachment-1.png", "a.pdf"],
    ],
  ])("%s: leaves the files behind it whole, and is doubted", async (_, part, files) => {
    const mail = await read(head + multipart("mixed", "out", [part, pdf]));
    expect(names(mail)).toEqual(files);
    expect(mail).toMatchObject({ new_text: "", rest_text: "Add it up." });
    expect(mail.warnings.join()).toContain("the border between two parts");
    expect(Buffer.from(mail.attachments.at(-1)?.bytes ?? []).toString()).toBe("%PDF");
  });

  test("goes on after what only looks like a border further out", async () => {
    const part = open("alternative", "in", `${text}\r\n--out  \r\nmore\r\n--in--`);
    expect((await read(head + multipart("mixed", "out", [part, pdf]))).rest_text).toContain("more");
  });
});

describe("uuencode", () => {
  const content = Uint8Array.from({ length: 200 }, (_, index) => (index * 37) % 256);
  const zeros = new Uint8Array(100);
  test("a file in the text becomes a file, and the words around it stay", async () => {
    const mail = await read(
      rawMail({ text: `Add it up.\n\n${uuencode("a b.pdf", content)}\n\nAnd send it.` }),
    );
    expect(mail.new_text).toBe("Add it up.\n\n\nAnd send it.");
    expect(mail.attachments).toMatchObject([
      { filename: "a b.pdf", content_type: "application/pdf", size: 200, inline: false },
    ]);
    expect(mail.attachments[0]?.bytes).toEqual(content);
    expect(mail.whole).toBe(false);
  });

  test("several, with a path for a name, in a text that joins its lines", async () => {
    const files = `${uuencode("../../one", zeros, " ")}\n${uuencode("two.txt", content)}`;
    const mail = await read(
      `${head}Content-Type: text/plain; format=flowed\r\n\r\nAdd \r\nit up.\r\n${files.replaceAll("\n", "\r\n")}\r\n`,
    );
    expect(mail.new_text).toBe("Add it up.");
    expect(mail.attachments.map(({ filename, bytes }) => [filename, bytes])).toEqual([
      ["one", zeros],
      ["two.txt", content],
    ]);
  });

  test.each([
    ["blanks cut off", (file: string) => file.replaceAll(/ +$/gm, "")],
    ["a checksum behind each line", (file: string) => file.replaceAll(/^(M.*)$/gm, "$1#")],
    ["four digits", (file: string) => file.replace("644", "0644")],
    ["no line that ends the data", (file: string) => file.replace("\n \nend", "\nend")],
  ])("%s", (_, change) => {
    const whole = uuencode(
      "x",
      zeros.map((__, index) => index + 1),
      " ",
    );
    expect(takeUuencoded(change(whole), 9).files[0]?.bytes.subarray(0, 100)).toEqual(
      zeros.map((__, index) => index + 1),
    );
  });

  test.each([
    ["words in capitals", "begin 644 orders\nPAY THE BILL\nAND TELL BOB\nend"],
    ["no end", uuencode("x", content).replace(/end$/, "")],
    ["something in between", uuencode("x", content).replace("\nM", "\nhello\nM")],
    ["a quote", uuencode("x", content).replaceAll(/^/gm, "> ")],
    ["a beginning alone", "begin 644 x"],
    ["nothing in it but its end", "begin 644 x\nend"],
  ])("%s is no file", (_, text) => {
    expect(takeUuencoded(text, 9)).toEqual({ text, files: [] });
  });

  test("more than may be unpacked stay text", () => {
    const files = Array.from({ length: 5 }, (_, index) => uuencode(`f${index}`, content)).join("\n");
    const taken = takeUuencoded(files, 3);
    expect(taken.files.map(({ name }) => name)).toEqual(["f0", "f1", "f2"]);
    expect(taken.text).toContain("begin 644 f3");
  });

  test.each([
    ["base64", (text: string) => Buffer.from(text).toString("base64").replaceAll(/.{76}/g, "$&\r\n")],
    ["quoted-printable", (text: string) => text.replaceAll("=", "=3D").replaceAll("\n", "\r\n")],
  ])("in a text in %s", async (encoding, encode) => {
    const text = encode(`Add it up.\n${uuencode("a.pdf", content)}\n`);
    const mail = await read(`${head}Content-Transfer-Encoding: ${encoding}\r\n\r\n${text}`);
    expect(mail.new_text).toBe("Add it up.");
    expect(mail.attachments.map(({ bytes }) => bytes)).toEqual([content]);
  });

  test("a part that is sent so", async () => {
    const part = `Content-Type: application/pdf; name=a.pdf\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n${uuencode("a.pdf", content)}`;
    const [file] = (await read(head + multipart("mixed", "m", [part]))).attachments;
    expect(file).toMatchObject({ filename: "a.pdf", size: 200 });
    expect(file?.bytes).toEqual(content);
  });

  test("costs little for texts made to take long", () => {
    const line = uuencode("x", content).split("\n")[1] ?? "";
    for (const text of ["begin 644 x\n", `begin 644 x\n${line}\n`, `${line}\n`, "begin 644 x\n\n", "end\n"]) {
      const started = ownMs();
      takeUuencoded(`begin 644 x\n${text.repeat(2_000_000 / text.length)}`, 1_000);
      expect(ownMs() - started).toBeLessThan(600);
    }
  });
});

describe("winmail.dat", () => {
  const winmail = (parts: TnefParts, text?: string): Promise<ParsedMail> =>
    read(
      rawMail({
        text: text ?? "",
        attachments: [{ filename: "winmail.dat", content_type: "application/ms-tnef", content: tnef(parts) }],
      }),
    );

  test("its files stand in its place, and the mail's text stays its sender's", async () => {
    const mail = await winmail(
      {
        subject: "Another subject",
        body: "Pay the bill.",
        files: [
          { title: "UBERSI~1.PDF", long_name: "Übersicht 日本.pdf", content: "%PDF" },
          { title: "\xe4.txt", content: "words" },
          { title: "logo.png", content_type: "IMAGE/PNG", hidden: true, content: "png" },
          { title: "odd", content_type: "text/plain\r\nX: y", content: "odd" },
        ],
      },
      "Add it up.",
    );
    expect(mail).toMatchObject({ subject: "Hello", new_text: "Add it up.", rest_text: "", warnings: [] });
    expect(mail.whole).toBe(false);
    expect(mail.attachments).toMatchObject([
      { filename: "Übersicht 日本.pdf", content_type: "application/pdf", size: 4, inline: false },
      { filename: "ä.txt", content_type: "text/plain", size: 5, inline: false },
      { filename: "logo.png", content_type: "image/png", size: 3, inline: true },
      { filename: "odd", content_type: "application/octet-stream", size: 3, inline: false },
    ]);
  });

  test("a mail whose text stands there alone is material", async () => {
    for (const parts of [{ body: "Pay the\u200b bill." }, { html: "<p>Pay the\u200b bill.</p>" }]) {
      const mail = await winmail(parts);
      expect(mail).toMatchObject({ new_text: "", rest_text: "Pay the bill.", attachments: [] });
      expect(mail.warnings.join()).toContain("Read as material");
      expect(mail.whole).toBe(false);
    }
    const none = await winmail({});
    expect(none).toMatchObject({ new_text: "", rest_text: "" });
    expect(none.warnings.join()).toContain("winmail.dat");
  });

  test("whatever the file is called, and as the whole of a mail", async () => {
    const content = Buffer.from(tnef({ files: [{ title: "a.txt", content: "x" }] })).toString("base64");
    const type = "Content-Type: application/octet-stream; name=part2.bin\r\n";
    const mail = await read(`${head}${type}Content-Transfer-Encoding: base64\r\n\r\n${content}`);
    expect(names(mail)).toEqual(["a.txt"]);
  });

  test("an attached mail is read as one, to a depth, and the subject is not the sender's own then", async () => {
    const deep = (level: number): TnefParts => ({
      subject: `Level ${level}`,
      body: `Words ${level}`,
      files: [
        { title: `${level}.txt`, content: "x" },
        ...(level < 6 ? [{ title: "mail", mail: tnef(deep(level + 1)) }] : []),
      ],
    });
    const mail = await winmail(deep(1), "See below.");
    expect(mail.own_subject).toBe(false);
    expect(mail.rest_text).toBe("Attached mail: Level 2\n\nWords 2\n\nAttached mail: Level 3\n\nWords 3");
    expect(names(mail)).toEqual(["1.txt", "2.txt", "3.txt"]);
  });

  test("a calendar program's answer in it leaves no words of the sender's", async () => {
    const ics = "BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\nEND:VCALENDAR";
    expect(
      await winmail({ files: [{ title: "a.ics", content: ics }] }, "Accepted: pay the bill"),
    ).toMatchObject({ new_text: "", own_subject: false });
  });

  test("holds no more files than a mail may have", () => {
    const file = attribute(2, 0x9002, Buffer.alloc(0));
    const bomb = Buffer.concat([tnef({}), ...Array.from({ length: 50_000 }, () => file)]);
    expect(readTnef(bomb, 1_000).files).toHaveLength(1_000);
  });

  test("lengths that lie leave what was read until then", () => {
    const whole = tnef({
      files: [
        { title: "a.txt", content: "12345" },
        { title: "b.txt", content: "12345" },
      ],
    });
    for (let end = 0; end < whole.length; end += 1) {
      const { files } = readTnef(whole.subarray(0, end), 9);
      expect(files.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThan(end + 1);
    }
    const huge = Buffer.concat([tnef({}), Buffer.from([2, 0x0f, 0x80, 0, 0, 255, 255, 255, 255, 1])]);
    expect(readTnef(huge, 9).files).toEqual([]);
    const values = Buffer.from("ffffffff1e100037ffffffff00000000".padEnd(4_000, "0"), "hex");
    expect(readTnef(Buffer.concat([tnef({}), attribute(1, 0x9003, values)]), 9).text).toBe("");
  });

  test("costs little for bytes made to take long", () => {
    const many = (id: number, data: Uint8Array): Uint8Array =>
      Buffer.concat([
        tnef({}),
        ...Array.from({ length: 2_000_000 / (data.length + 11) }, () => attribute(1, id, data)),
      ]);
    for (const stream of [
      many(0x9003, Buffer.alloc(0)),
      many(0x8004, Buffer.alloc(100, "a")),
      many(0x9003, Buffer.from("ffffffff1e000010ffffffff00000000", "hex")),
      Buffer.concat([tnef({}), attribute(1, 0x9003, Buffer.alloc(2_000_000, 2))]),
    ]) {
      const started = ownMs();
      readTnef(stream, 1_000);
      expect(ownMs() - started).toBeLessThan(600);
    }
  });
});
