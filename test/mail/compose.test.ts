import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";

import { LOOK } from "../../src/mail/writing/look.ts";
import { composeReply, references, type ReplyInput, replySubject } from "../../src/mail/writing/compose.ts";
import { markdownToHtml } from "../../src/mail/writing/html-writer.ts";
import { written, writtenNotes } from "../../src/mail/writing/written.ts";
import { ownMs } from "../support/own-time.ts";

const REPLY: ReplyInput = {
  from: { name: "Invoices", address: "inv-7@mail.example" },
  to: "ann@example.org",
  reply_to: "inv-7+c_abc@mail.example",
  envelope_from: "b+token@mail.example",
  subject: "Invoice 12",
  in_reply_to: "two@example.org",
  references: ["one@example.org", "two@example.org"],
  message_id: "0198.1a2b@mail.example",
  hop: 1,
  words: written("Hello **Ann**,\n\nit is done."),
  footer: "Sent by AI on behalf of Invoices",
  date: new Date(1_700_000_000_000),
  kind: "reply",
};

describe("headers", () => {
  test("of a reply thread it, name its kind and keep other robots silent", async () => {
    const { fields, mail } = await composed();
    expect(fields).toMatchObject({
      from: "Invoices <inv-7@mail.example>",
      to: "ann@example.org",
      "reply-to": "Invoices <inv-7+c_abc@mail.example>",
      subject: "Re: Invoice 12",
      "message-id": "<0198.1a2b@mail.example>",
      "in-reply-to": "<two@example.org>",
      references: "<one@example.org> <two@example.org>",
      "auto-submitted": "auto-replied",
      "x-auto-response-suppress": "All",
      "x-mailwright-hop": "1",
      date: "Tue, 14 Nov 2023 22:13:20 +0000",
      "mime-version": "1.0",
    });
    expect(Object.keys(fields)).not.toContain("precedence");
    expect(mail).toMatchObject({
      rfc_message_id: "0198.1a2b@mail.example",
      envelope_from: "b+token@mail.example",
      envelope_to: "ann@example.org",
    });
  });

  test("of a notice say auto-generated and keep its own subject and the null sender", async () => {
    const { fields, mail } = await composed({
      kind: "notice",
      subject: "Your mail\ncould not",
      envelope_from: "",
    });
    expect(fields).toMatchObject({ "auto-submitted": "auto-generated", subject: "Your mail could not" });
    expect(mail.envelope_from).toBe("");
  });

  test("stay free of what nobody gave", async () => {
    const { reply_to: _, in_reply_to: __, references: ___, ...bare } = REPLY;
    const { raw } = await composeReply(bare);
    expect(Object.keys(fieldsOf(raw))).not.toContainAnyValues(["reply-to", "in-reply-to", "references"]);
    expect(fieldsOf(raw)["reply-to"]).toBeUndefined();
  });

  test("are the same bytes for the same input, as a repeated attempt needs", async () => {
    const attachments = [{ filename: "a.csv", content_type: "text/csv", bytes: Buffer.from("a,b\n") }];
    const first = await composeReply({ ...REPLY, attachments });
    expect((await composeReply({ ...REPLY, attachments })).raw).toEqual(first.raw);
    expect((await composeReply({ ...REPLY, attachments, message_id: "x@y.example" })).raw).not.toEqual(
      first.raw,
    );
  });

  test("have only CRLF line ends, none over 998 octets, however long the ids are", async () => {
    const long = Array.from({ length: 200 }, (_, index) => `${index}.${"r".repeat(850)}@example.org`);
    const { raw } = await composed({
      references: [...long, `${"x".repeat(1_000)}@example.org`],
      in_reply_to: `${"y".repeat(850)}@example.org`,
      subject: "word ".repeat(500),
      words: written("x".repeat(5_000)),
    });
    const text = raw.toString("latin1");
    expect(text).not.toMatch(/(?:^|[^\r])\n|\r(?!\n)/);
    expect(Math.max(...text.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998);
    expect(fieldsOf(raw)["references"]?.split(" ")).toHaveLength(21);
  });

  const INJECTION = "x\r\nBcc: victim@example.net\r\n\r\n<script>\n.\r\nMAIL FROM:<a@b.example>\0\u2028y";

  test("cannot be added through a subject, a label, a file name, a type, an id or a footer", async () => {
    const { raw } = await composed({
      subject: INJECTION,
      from: { name: INJECTION, address: REPLY.from.address },
      in_reply_to: INJECTION,
      references: [INJECTION, "<a@b> <c@d>\r\nBcc: v@w.example"],
      footer: INJECTION,
      attachments: [
        { filename: INJECTION, content_type: `text/plain\r\n${INJECTION}`, bytes: Buffer.from("x") },
      ],
    });
    const mail = await simpleParser(raw);
    expect(mail.bcc).toBeUndefined();
    expect([...mail.headers.keys()].sort().join(" ")).toBe(
      "auto-submitted content-type date from message-id mime-version reply-to subject to x-auto-response-suppress x-mailwright-hop",
    );
    expect(mail.subject).toBe("Re: x Bcc: victim@example.net <script> . MAIL FROM:<a@b.example> y");
    expect(mail.attachments.map(({ contentType }) => contentType)).toEqual(["application/octet-stream"]);
    expect(raw.toString("latin1")).not.toMatch(/^Bcc:/im);
  });

  test.each([
    ["to", "ann@example.org, bob@example.org"],
    ["to", "ann@example.org\r\nBcc: bob@example.org"],
    ["to", "Ann <ann@example.org>"],
    ["to", "ann"],
    ["to", ""],
    ["reply_to", "a b@example.org"],
    ["envelope_from", "a@b.example> SIZE=1"],
    ["message_id", "a b@example.org"],
    ["message_id", "a@b>\r\nX: y"],
  ])("are refused when %s is %j", async (name, value) => {
    expect(await failureOf(composeReply({ ...REPLY, [name]: value }))).toMatchObject({
      code: "validation_error",
    });
  });

  test("carry encoded words of ours only: one in the subject stays text", async () => {
    const { mail } = await composed({ subject: "=?utf-8?q?Bcc=3A_a=0D=0Ab?=" });
    expect((await simpleParser(mail.raw)).subject).toBe("Re: = ?utf-8?q?Bcc=3A_a=0D=0Ab?=");
  });

  test("keep letters beyond ASCII readable", async () => {
    const { raw } = await composed({
      subject: "Grüße ✉",
      from: { name: "Büro ✉", address: "b@büro.example" },
    });
    expect(raw.toString("latin1").slice(0, raw.indexOf("\r\n\r\n"))).not.toMatch(/[^\0-\x7f]/);
    const mail = await simpleParser(raw);
    expect(mail.subject).toBe("Re: Grüße ✉");
    expect(mail.from?.value).toEqual([{ name: "Büro ✉", address: "b@büro.example" }]);
    expect(fieldsOf(raw)["from"]).toEndWith("<b@xn--bro-hoa.example>");
  });
});

describe("body", () => {
  test("is the Markdown to be read as text and the same as HTML, both with the footer", async () => {
    const { raw } = await composed();
    const mail = await simpleParser(raw);
    expect(mail.text).toBe("Hello Ann,\n\nit is done.\n\n-- \nSent by AI on behalf of Invoices\n");
    expect(bare(mail.html)).toContain("<p>Hello <strong>Ann</strong>,</p>\n<p>it is done.</p>");
    expect(bare(mail.html)).toContain("<div>Sent by AI on behalf of Invoices</div>");
    expect(fieldsOf(raw)["content-type"]).toStartWith("multipart/alternative");
  });

  test("goes without a footer when there is none, and says so when there is no text", async () => {
    const { raw } = await composed({ footer: "", words: written(" \n") });
    const mail = await simpleParser(raw);
    expect(mail.text).toBe("The answer has no text.\n");
    expect(mail.html).not.toContain(LOOK.footer);
  });

  test("over 100,000 characters is its beginning, and the whole is attached as reply.md", async () => {
    const markdown = "start\n\n" + "word 😀 ".repeat(15_000) + "the very end";
    const { raw } = await composed({ words: written(markdown) });
    const mail = await simpleParser(raw);
    expect(mail.text?.length).toBeLessThan(100_200);
    expect(mail.text).toContain("The answer goes on in the attached file reply.md.");
    expect(mail.text).not.toContain("the very end");
    expect(mail.text).not.toContain("\uFFFD");
    expect(mail.html).toContain("reply.md");
    expect(mail.attachments).toHaveLength(1);
    expect(mail.attachments[0]).toMatchObject({ filename: "reply.md", contentType: "text/markdown" });
    expect(mail.attachments[0]?.content.toString()).toBe(markdown);
  });

  test("has its notes below it, also where the rest of it is cut off", async () => {
    for (const markdown of ["short", "long ".repeat(30_000), ""]) {
      const { raw } = await composed({
        words: written(markdown),
        notes: writtenNotes("`Not read: a.bin`"),
      });
      const mail = await simpleParser(raw);
      expect(mail.text).toMatch(/\n\nNot read: a\.bin\n\n-- \nSent/);
      expect(bare(mail.html)).toContain("<p>Not read: a.bin</p>");
    }
  });

  test("shows in both parts only the links that a guard lets stay", async () => {
    const links = {
      left_out: 0,
      keeps: (url: string) => url === "https://ok.example/",
      clean: (text: string) => text.replaceAll("https://no.example/", "-"),
    };
    const { raw } = await composed({
      words: written(
        "[a](https://ok.example/) [b](https://no.example/) `https://no.example/` &#104;ttps://no.example/",
        { guard: links },
      ),
    });
    const { html, text } = await simpleParser(raw);
    expect(bare(html)).toContain('<a href="https://ok.example/">a</a> (ok.example) b (link left out)');
    expect(bare(html)).toContain("<code>-</code>");
    expect(text).toStartWith("a <https://ok.example/> b (link left out) - -");
    expect(`${html} ${text}`).not.toContain("no.example");
    expect(links.left_out).toBe(1);
  });

  test("carries 10 MB, an empty file and names of any script with quotes, and an outside reader gets them back", async () => {
    const files = [
      { filename: '四半期 "報告".csv', content_type: "text/csv; charset=utf-8", bytes: Buffer.from("a\n") },
      { filename: "empty.txt", content_type: "text/plain; charset=utf-8", bytes: Buffer.alloc(0) },
      { filename: "large.png", content_type: "image/png", bytes: Buffer.alloc(10 * 1024 * 1024 - 2, 7) },
    ];
    const { raw, fields } = await composed({ attachments: files });
    expect(fields["content-type"]).toStartWith("multipart/mixed");
    expect(raw.toString("latin1", 0, 5_000)).not.toMatch(/[^\0-\x7f]/);
    const { attachments } = await simpleParser(raw);
    expect(attachments.map(({ filename, size }) => [filename, size])).toEqual(
      files.map(({ filename, bytes }) => [filename, bytes.length]),
    );
    expect(attachments[2]?.content.equals(files[2]?.bytes ?? Buffer.alloc(0))).toBe(true);
  });

  test("of exactly 100,000 characters is whole as text", async () => {
    const { raw } = await composed({ words: written("x".repeat(100_000)), footer: "" });
    expect((await simpleParser(raw)).text?.trim()).toBe("x".repeat(100_000));
  });

  test("keeps the bytes and names of files, and makes names safe to save", async () => {
    const bytes = Buffer.from(Array.from({ length: 1_000 }, (_, index) => index % 256));
    const { raw } = await composed({
      attachments: [
        { filename: "übersicht.pdf", content_type: "application/pdf", bytes },
        { filename: "../../etc/passwd", content_type: "message/rfc822", bytes: Buffer.from("From: x\n") },
        { filename: "", content_type: "nonsense", bytes: Buffer.alloc(0) },
      ],
    });
    const { attachments } = await simpleParser(raw);
    expect(attachments.map(({ filename, contentType }) => [filename, contentType])).toEqual([
      ["übersicht.pdf", "application/pdf"],
      [".._.._etc_passwd", "application/octet-stream"],
      ["attachment", "application/octet-stream"],
    ]);
    expect(attachments[0]?.content).toEqual(bytes);
  });

  test("is refused with more than 25 MB of files", async () => {
    const attachments = [
      { filename: "a", content_type: "image/png", bytes: Buffer.alloc(25 * 1024 * 1024 + 1) },
    ];
    expect(await failureOf(composeReply({ ...REPLY, attachments }))).toMatchObject({
      code: "payload_too_large",
    });
  });
});

describe("HTML", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](//evil.example/x)",
    "[a](/relative)",
    "![a](https://evil.example/pixel.png)",
    "![a](data:image/png;base64,AAAA)",
    '[a](https://ok.example "t\\" onmouseover=alert(1)")',
    '<https://ok.example/"onclick=alert(1)>',
    "`<b onclick=x>`",
    "[a]: javascript:alert(1)\n\n[a]",
    "<iframe src='https://ok.example'></iframe>",
    "<style>body{background:url(https://ok.example)}</style>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
  ])("has no element or attribute but harmless ones: %s", (markdown) => {
    for (const tag of bare(markdownToHtml(markdown)).match(/<[^>]*>/g) ?? []) {
      expect(tag).toMatch(/^<(?:\/?(?:p|code|a|em|br)(?: ?\/)?|a href="https:\/\/ok\.example[^"<>]*")>$/);
    }
  });

  test.each([
    ["[your bank](https://evil.example/x)", "your bank</a> (evil.example)"],
    ["[https://bank.example](https://evil.example/x)", "https://bank.example</a> (evil.example)"],
    ["[**bank**.example](https://evil.example)", "</a> (evil.example)"],
    ["[x](https://bank.example@evil.example/)", "x</a> (evil.example)"],
    ["<https://bank.example@evil.example/>", "</a> (evil.example)"],
    ["[x](https://bücher.example/)", "x</a> (xn--bcher-kva.example)"],
    ["[x](https://evil.example:8443/)", "x</a> (evil.example:8443)"],
    ["[write to us](mailto:a@evil.example?subject=x)", "write to us</a> (a@evil.example)"],
    ["[![logo](https://evil.example/p.png)](https://evil.example/)", "[logo]</a> (evil.example)"],
    ["[a](https://one.example) and [b](https://two.example)", "b</a> (two.example)"],
  ])("shows where a link leads: %s", (markdown, expected) => {
    expect(bare(markdownToHtml(markdown))).toContain(expected);
  });

  test.each([
    "https://ok.example/a?b=c&d=e",
    "[https://ok.example/](https://ok.example/)",
    "<https://ok.example>",
    "ann@ok.example",
    "[ann@ok.example](mailto:ann@ok.example)",
    "https://ok.example/ü",
  ])("repeats nothing for a link that says so itself: %s", (markdown) => {
    const html = markdownToHtml(markdown);
    expect(html).toContain("<a href=");
    expect(html).not.toContain("</a> (");
  });

  test("a link that is far too long is none, and takes no time", () => {
    const marks = "\u0315\u0300\u05ae".repeat(30_000);
    const started = ownMs();
    expect(markdownToHtml(`[x](https://a${marks}.test/)`)).not.toContain("<a");
    expect(ownMs() - started).toBeLessThan(500);
    expect(markdownToHtml(`[x](https://a.test/${"y".repeat(2_000)})`)).toContain("<a");
  });

  test("makes no link of a file's name, nor fails on a broken address", () => {
    expect(markdownToHtml("see notes.md and run.sh")).not.toContain("<a");
    expect(() =>
      markdownToHtml("[x](mailto:%E0%A4) [y](https://%) [z](http://[) <http://a b>"),
    ).not.toThrow();
  });

  test("keeps headings, lists, tables, code and line breaks", () => {
    const html = bare(
      markdownToHtml("# T\n\n3. a\n4. b\n\n|x|y|\n|-|-|\n|a|2|\n\n```js\n1 < 2\n```\n\none\ntwo ~~three~~"),
    );
    for (const part of [
      "<h1>T</h1>",
      '<ol start="3">',
      "<td>a</td>",
      '<td align="right" nowrap>2</td>',
      "<pre>1 &lt; 2\n</pre>",
      "one<br />",
      "<s>three",
    ]) {
      expect(html).toContain(part);
    }
  });
});

describe("replySubject", () => {
  test.each([
    ["Invoice", "Re: Invoice"],
    ["Re: Invoice", "Re: Invoice"],
    ["RE: Fwd: AW: SV: Invoice", "Re: Invoice"],
    ["re[2]: WG : RV: TR:Invoice", "Re: Invoice"],
    ["回复：转发: Invoice", "Re: Invoice"],
    ["Research: results", "Re: Research: results"],
    ["Order: re: bolts", "Re: Order: re: bolts"],
    ["", "Re: (no subject)"],
    ["Re: ", "Re: (no subject)"],
    ["a\r\nBcc: b@c.example", "Re: a Bcc: b@c.example"],
    ["a\u202Egpj.exe", "Re: a gpj.exe"],
  ])("of %j is %j", (subject, expected) => {
    expect(replySubject(subject)).toBe(expected);
  });

  test("is short whatever it answers", () => {
    expect(replySubject("Re: ".repeat(100_000)).length).toBeLessThan(300);
    expect(replySubject("x".repeat(100_000)).length).toBeLessThan(300);
  });
});

describe("references", () => {
  test("are those of the parent and then the parent, without brackets", () => {
    expect(references(["<a@x>", "b@x"], "<c@x>")).toEqual(["a@x", "b@x", "c@x"]);
    expect(references([], "c@x")).toEqual(["c@x"]);
    expect(references([])).toEqual([]);
  });

  test("name each id once, the parent last", () => {
    expect(references(["a@x", "c@x", "b@x"], "c@x")).toEqual(["a@x", "b@x", "c@x"]);
  });

  test("keep the first and the last twenty of many", () => {
    const ids = Array.from({ length: 60 }, (_, index) => `${index}@x`);
    expect(references(ids, "p@x")).toEqual(["0@x", ...ids.slice(41), "p@x"]);
  });

  test("leave out what is no id", () => {
    expect(references(["a b@x", "<<a@x>>", "", "ü@x", "x".repeat(2_000), "ok@x\r\n"])).toEqual(["ok@x"]);
  });

  test("of a hostile header take no time", () => {
    const ids = Array.from({ length: 5_000 }, (_, index) => `${index}@x`);
    const started = ownMs();
    expect(references(ids)).toHaveLength(21);
    expect(ownMs() - started).toBeLessThan(500);
  });
});

/** HTML without its looks. */
function bare(html: string | false): string {
  return String(html).replaceAll(/ (?:style|class)="[^"]*"/g, "");
}

async function composed(changes: Partial<ReplyInput> = {}) {
  const mail = await composeReply({ ...REPLY, ...changes });
  return { mail, raw: mail.raw, fields: fieldsOf(mail.raw) };
}

/** The header section as the wire has it, unfolded. */
function fieldsOf(raw: Buffer): Record<string, string> {
  const section = raw.toString("latin1").split("\r\n\r\n")[0] ?? "";
  return Object.fromEntries(
    section.split(/\r\n(?![ \t])/).map((line) => {
      const colon = line.indexOf(":");
      return [
        line.slice(0, colon).toLowerCase(),
        line
          .slice(colon + 1)
          .replaceAll("\r\n", "")
          .trim(),
      ];
    }),
  );
}

/** What a promise was rejected with; undefined when it was not. */
function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}
