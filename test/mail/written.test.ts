import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";

import { LOOK } from "../../src/mail/writing/look.ts";
import { splitNewText, readableHtml } from "../../src/trust/own-words/reply-text.ts";
import { written, writtenNotes, writtenPlain } from "../../src/mail/writing/written.ts";
import { everyMail } from "../support/every-mail.ts";
import { SAMPLE_ANSWERS } from "../support/sample-answers.ts";

const MAILS = await everyMail();
const HTML_BYTES = 100_000;

describe("every mail of ours", () => {
  const each = MAILS.map(({ name, raw }) => [name, raw] as const);

  test("is there: answers, failures, notices, codes and cards", () => {
    expect(MAILS.map(({ name }) => name)).toEqual([
      ...Object.keys(SAMPLE_ANSWERS).map((name) => `answer-${name.replaceAll("_", "-")}`),
      "answer-with-notes",
      "answer-too-long",
      "failure",
      "answer-pictures",
      "code",
      "key",
      "export",
      "password",
      "farewell",
      "card",
      "summed-up",
      "not-worked-on",
      "storage-full",
    ]);
  });

  test.each(each)("has the one page, in which nothing is remote or acts: %s", async (_name, raw) => {
    const html = String((await simpleParser(raw, { keepCidLinks: true })).html);
    expect(html.match(/<div class="mailwright" /g)).toHaveLength(1);
    expect(html).toContain('<meta name="color-scheme" content="light dark">');
    expect(html).toContain("@media (prefers-color-scheme:dark)");
    expect(Buffer.byteLength(html)).toBeLessThanOrEqual(HTML_BYTES);
    expect(html).not.toMatch(/url\(|@import|<(?:link|script|iframe|form|base|object|svg)\b|\son\w+=/i);
    for (const [, source] of html.matchAll(/\s(?:src|srcset|background)="([^"]*)"/g))
      expect(source).toStartWith("cid:");
  });

  test.each(each)(
    "has its looks in its elements, and each background its own colour: %s",
    async (_name, raw) => {
      const body = String((await simpleParser(raw)).html).split("<body>")[1] ?? "";
      const looks = Object.values(LOOK) as string[];
      expect(body).not.toContain("<style");
      for (const [, look = ""] of body.matchAll(/ style="([^"]*)"/g)) expect(looks).toContain(look);
      for (const [tag] of body.matchAll(
        /<(?:p|h[1-6]|ul|ol|li|blockquote|pre|code|table|t[hd]|a|hr|img)\b[^<>]*>/g,
      ))
        expect(tag).toContain(" style=");
      for (const look of looks) if (look.includes("background")) expect(look).toMatch(/;color:/);
    },
  );

  test.each(each)("has lines that every server takes, and text that folds: %s", async (_name, raw) => {
    const lines = raw.toString("latin1").split("\r\n");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(998);
    const { text = "" } = await simpleParser(raw);
    for (const line of text.split("\n")) {
      const isWhole = line.startsWith("    ") || !line.trim().includes(" ");
      if (Bun.stringWidth(line) > 78 && !isWhole) expect(longestWord(line)).toBeGreaterThan(40);
    }
    // Format=flowed would join what ends in a blank.
    expect(text.split("\n").filter((line) => line.endsWith(" ") && line !== "-- ")).toEqual([]);
  });

  test.each(each)("is no Markdown in its text part, and says the same in both: %s", async (name, raw) => {
    const { text = "", html } = await simpleParser(raw);
    expect(text).not.toMatch(/\*\*|`|\]\(|^#+ |^\|/m);
    if (name === "answer-too-long") return;
    const shown = readableHtml(String(html)).text.replaceAll(/> \([^()\s]+\)/g, ">");
    expect(wordsOf(text)).toEqual(wordsOf(shown));
  });
});

function longestWord(line: string): number {
  return Math.max(...line.split(" ").map(({ length }) => length));
}

/** Each word once; what stands for a picture has no words in the HTML. */
function wordsOf(text: string): string[] {
  const words = text.replaceAll(/\[image: [^\]]*\]/g, "").replaceAll(/\S+\.png/g, "");
  return [...new Set(words.toLowerCase().match(/[\p{L}\p{N}]+/gu))].sort();
}

describe("the text part", () => {
  const textOf = (markdown: string) => written(markdown).text;

  test.each([
    ["a login code", "Your code is **359724**.", "Your code is 359724."],
    ["headings", "# One\n\n## Two\n\n### Three\n\nx", "One\n===\n\nTwo\n---\n\nThree\n\nx"],
    ["a link", "See [it](https://a.example/b).", "See it <https://a.example/b>."],
    [
      "a link that says itself",
      "<https://a.example/b> [x@a.example](mailto:x@a.example)",
      "https://a.example/b x@a.example",
    ],
    ["lists", "3. a\n4. b\n   - c\n   - d\n\n     e", "3. a\n4. b\n   - c\n\n   - d\n\n     e"],
    ["tasks", "- [x] done\n- [ ] open", "☑ done\n☐ open"],
    ["quotes", "> a\n>\n> - b", "> a\n>\n> - b"],
    ["code", "Do:\n\n```sh\nls  -l\n\n  pwd\n```", "Do:\n\n    ls  -l\n\n      pwd"],
    ["code in a line", "Run `ls` or `ls -l`.", 'Run ls or "ls -l".'],
    [
      "a footnote",
      "One[^b], two[^a], one[^b].\n\n[^a]: Aa.\n[^b]: Bb\nbb.",
      "One[1], two[2], one[1].\n\n[1] Bb\n    bb.\n[2] Aa.",
    ],
    ["a picture from elsewhere", "![Logo](https://a.example/p.png)", "[Logo]"],
    ["what was crossed out", "~~old~~ new", "~old~ new"],
    ["a line", "a\n\n---\n\nb", "a\n\n* * *\n\nb"],
    ["characters of Markdown", "1 \\* 2 &lt; 3 \\_x\\_", "1 * 2 < 3 _x_"],
  ])("is written for reading: %s", (_name, markdown, expected) => {
    expect(textOf(markdown)).toBe(expected);
  });

  test("sets a table in columns, numbers to the right", () => {
    expect(textOf("| Item | Sum |\n|---|---|\n| Tea | 1.50 |\n| 漢字 | 12.00 |\n| Milk | – |")).toBe(
      "Item    Sum\n----  -----\nTea    1.50\n漢字  12.00\nMilk      –",
    );
  });

  test("folds the words of a table that is a little too wide", () => {
    const lines = textOf(`| A | B |\n|---|---|\n| one | ${"word ".repeat(30)} |\n| two | x |`).split("\n");
    expect(lines.every((line) => line.length <= 74)).toBe(true);
    expect(lines.slice(0, 2)).toEqual(["A    B", `---  ${"-".repeat(69)}`]);
    expect(lines.at(-1)).toBe("two  x");
  });

  test("writes names and values where a table is far too wide", () => {
    const names = Array.from({ length: 12 }, (_, at) => `Column ${at}`);
    const row = names.map((_, at) => `value${at}`);
    const text = textOf(`|${names.join("|")}|\n|${"-|".repeat(12)}\n|${row.join("|")}|\n|${row.join("|")}|`);
    const block = names.map((name, at) => `${name}: ${row[at]}`).join("\n");
    expect(text).toBe(`${block}\n\n${block}`);
  });

  test("folds between words, and leaves an address whole", () => {
    const address = `https://a.example/${"x".repeat(120)}`;
    const lines = textOf(`${"word ".repeat(20)}${address} ${"漢字".repeat(30)}`).split("\n");
    expect(lines).toContain(address);
    for (const line of lines.filter((one) => one !== address))
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(74);
  });

  test("begins no folded line with the mark of a quote", () => {
    for (let words = 8; words < 20; words += 1)
      expect(textOf(`${"words ".repeat(words)}> 5 -- x`)).not.toMatch(/^(?:>|--$)/m);
  });

  test("is not much longer than what was written, however deep it is", () => {
    expect(textOf(`${">".repeat(99)} a\n${"b\n".repeat(2_000)}`).length).toBeLessThan(80_000);
    const wide = `|${"a".repeat(60)}|\n|-|\n${"|b|\n".repeat(2_000)}`;
    expect(textOf(wide).length).toBeLessThan(12 * wide.length);
  });
});

describe("the HTML", () => {
  const htmlOf = (markdown: string) => written(markdown).html.replaceAll(/ (?:style|class)="[^"]*"/g, "");

  test.each([
    ["numbers to the right", "|a|b|\n|-|-|\n|x|€1,204.50|\n|y|−3 %|", '<td align="right" nowrap>−3 %</td>'],
    ["not dates", "|a|b|\n|-|-|\n|x|2026-01-02|", "<td>2026-01-02</td>"],
    ["as the table says", "|a|b|\n|-|:-:|\n|x|12|", '<td align="center" nowrap>12</td>'],
  ])("aligns cells: %s", (_name, markdown, expected) => {
    expect(htmlOf(markdown)).toContain(expected);
  });

  test("shows tasks as boxes and footnotes at the end", () => {
    expect(htmlOf("- [x] a\n- [ ] b")).toContain("<li>☑ a</li>\n<li>☐ b</li>");
    const html = htmlOf("One[^n].\n\n[^n]: Words *here*.\n\nLast.");
    expect(html).toContain("One<sup>[1]</sup>.");
    expect(html).toEndWith("<p>Last.</p>\n<p>[1] Words <em>here</em>.</p>\n");
    expect(htmlOf("One[^n].")).toContain("One[^n].");
  });

  test("lets every block find its direction where some are written from right to left", () => {
    expect(htmlOf("שלום\n\nHello\n\n- שלום")).toMatch(
      /^<p dir="auto">.*<p dir="auto">Hello.*<ul dir="auto"><li>/s,
    );
    expect(htmlOf("Hello")).not.toContain("dir=");
  });

  test("sets a paragraph of code as words only in what we write ourselves", () => {
    expect(htmlOf("`a b`")).toContain("<code>");
    expect(written("`a b`", { own: true }).html).not.toContain("<code");
    expect(writtenNotes("`a b`").html).not.toContain("<code");
  });

  test.each([
    ["a table", `|a|b|\n|-|-|\n${"|x|y|\n".repeat(9_000)}`, /<\/tr>\n<\/tbody><\/table><\/div>\n<p /],
    ["a list", "- item\n".repeat(9_000), /<\/li>\n<\/ul><p /],
    ["paragraphs", "Some words.\n\n".repeat(7_000), /<\/p>\n<p [^<>]*><em>This is the beginning/],
    ["code", `\`\`\`\n${"line\n".repeat(18_000)}\`\`\``, /line\n<\/pre>\n?<p /],
    ["one word", "x".repeat(99_000), /x<\/p>\n?<p /],
  ])(
    "of an answer too long for it ends well, and all of it is in the text part and attached: %s",
    (_name, markdown, end) => {
      const { html, text, whole } = written(markdown);
      expect(Buffer.byteLength(html)).toBeLessThan(80_000);
      expect(Buffer.byteLength(html)).toBeGreaterThan(60_000);
      expect(html).toMatch(end);
      expect(html).toContain("reply.md");
      expect(whole).toBe(markdown.trim());
      expect(text).not.toContain("reply.md");
      const [word = ""] = /\w+/.exec(markdown.slice(20)) ?? [];
      expect(text.split(word).length).toBe(markdown.split(word).length);
    },
  );

  test("of what takes too long to read is its characters", () => {
    const { html, text, whole } = writtenPlain("**a**\n<b>");
    expect([html.replaceAll(/ style="[^"]*"/g, ""), text, whole]).toEqual([
      "<p>**a**<br />\n&lt;b&gt;</p>\n",
      "**a**\n<b>",
      null,
    ]);
    expect(Buffer.byteLength(writtenPlain('"'.repeat(90_000)).html)).toBeLessThan(80_000);
  });
});

describe("an answer that is quoted in the reply to it", () => {
  const mail = MAILS.find(({ name }) => name === "answer-report");
  const own = "Thank you, now send it to Bob.";
  const wrappers: [string, (html: string) => string, (text: string) => string][] = [
    [
      "by Gmail",
      (html) =>
        `<div dir="ltr">${own}</div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">On Thu, Jan 15, 2026 at 10:00 AM Desk &lt;<a href="mailto:desk@mw.test">desk@mw.test</a>&gt; wrote:<br></div><blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;border-left:1px solid rgb(204,204,204);padding-left:1ex"><u></u>${html}</blockquote></div>`,
      (text) => `${own}\n\nOn Thu, Jan 15, 2026 at 10:00 AM Desk <desk@mw.test> wrote:\n\n${quoted(text)}`,
    ],
    [
      "by Apple Mail",
      (html) =>
        `<html><head><meta charset="utf-8"></head><body>${own}<br><div><br><blockquote type="cite"><div>On 15 Jan 2026, at 10:00, Desk &lt;desk@mw.test&gt; wrote:</div><br class="Apple-interchange-newline"><div>${html}</div></blockquote></div><br></body></html>`,
      (text) => `${own}\n\n> On 15 Jan 2026, at 10:00, Desk <desk@mw.test> wrote:\n> \n${quoted(text)}`,
    ],
    [
      "by Outlook",
      (html) =>
        `<html><body><div class="WordSection1"><p class="MsoNormal">${own}</p><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm"><p class="MsoNormal"><b>From:</b> Desk &lt;desk@mw.test&gt;<br><b>Sent:</b> Thursday, January 15, 2026 10:00 AM<br><b>To:</b> Ada<br><b>Subject:</b> Re: Hello</p></div>${html}</div></body></html>`,
      (text) =>
        `${own}\n\nFrom: Desk <desk@mw.test>\nSent: Thursday, January 15, 2026 10:00 AM\nTo: Ada\nSubject: Re: Hello\n\n${text}`,
    ],
    [
      "by Thunderbird",
      (html) =>
        `<html><body><p>${own}</p><div class="moz-cite-prefix">On 15.01.26 10:00, Desk wrote:<br></div><blockquote type="cite" cite="mid:x@mw.test">${html}</blockquote></body></html>`,
      (text) => `${own}\n\nOn 15.01.26 10:00, Desk wrote:\n${quoted(text)}`,
    ],
  ];

  test.each(wrappers)(
    "is material, and the words above it are the sender's: %s",
    async (_name, inHtml, inText) => {
      const { text = "", html } = await simpleParser(mail?.raw ?? Buffer.alloc(0));
      const inner = String(html).replace(/^[^]*<body>|<\/body>[^]*$/g, "");
      const bodies = [
        { html: inHtml(String(html)) },
        { html: inHtml(inner) },
        { text: inText(text) },
        { text: inText(text), html: inHtml(inner) },
      ];
      for (const body of bodies) {
        const { new_text, rest_text, hidden_html, interleaved } = splitNewText(body);
        expect([new_text, hidden_html, interleaved]).toEqual([own, 0, false]);
        expect(rest_text).toContain("Third quarter at a glance");
        expect(rest_text).toContain("Decide on the catalogue");
      }
    },
  );
});

function quoted(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "> ");
}
