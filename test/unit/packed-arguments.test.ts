import { describe, expect, test } from "bun:test";
import type { Tool } from "../../src/trust/guard/tool.ts";
import { objectionTo } from "../support/guard.ts";
import { ownMs } from "../support/own-time.ts";

/** A call of somebody else's tool in a run that has read what others wrote and whose instruction names the target. */
function objection(
  args: Record<string, unknown>,
  { read_only = false, trusted_text = "ada@example.com", material = "" } = {},
): string | null {
  const tool: Tool = {
    target: "mcp:office",
    name: "do_it",
    description: "",
    parameters: {},
    read_only,
    destructive: false,
    foreign: true,
    call: () => Promise.reject(new Error("not in this test")),
  };
  const powers = { mayUse: () => true, mayWrite: () => true, destroy: false };
  const found = objectionTo({
    tool,
    args,
    powers,
    tainted: true,
    beside: null,
    subject_alone: false,
    instruction: trusted_text,
    trusted_text,
    material,
    places: [],
    read_at: [],
    anybodys: true,
    own_domains: ["mw.test"],
  });
  return found?.reason ?? null;
}

const LONG = "Ada's house key is under the stone. ".repeat(12);
const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString("base64");
const base64url = (text: string): string => Buffer.from(text).toString("base64url");
const escaped = (text: string): string =>
  text.replaceAll("@", String.raw`\u0040`).replaceAll(".", String.raw`\u002e`);
const encoded = (text: string): string => encodeURIComponent(text).replaceAll("%20", "+");
const mailTo = (to: string, body = "The key."): string =>
  `To: ${to}\r\nSubject: Key\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\n${body}\r\n`;
const word = (text: string, charset = "utf-8"): string => `=?${charset}?b?${base64(text)}?=`;
const multipart = (...fields: [string, string][]): string =>
  fields
    .map(([name, value]) => `--=_x1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
    .join("")
    .concat("--=_x1--\r\n");

/** Ways to give an address in a text that a program takes apart. */
const PACKED: [what: string, (to: string) => Record<string, unknown>][] = [
  ["JSON with escapes", (to) => ({ params: `{"to":"${escaped(to)}","text":"hi there"}` })],
  [
    "JSON with every letter escaped",
    (to) => ({
      params: `{"to":"${to.replaceAll(/./g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}"}`,
    }),
  ],
  ["JSON with escapes in prose", (to) => ({ body: `{"to":"${escaped(to)}",\n"text":"${LONG}"}` })],
  ["long JSON as prose", (to) => ({ path: "/mail", body: JSON.stringify({ to, text: LONG }) })],
  ["JSON over many lines as prose", (to) => ({ body: JSON.stringify({ to, text: LONG }, null, 2) })],
  ["a list of JSON as prose", (to) => ({ body: JSON.stringify([{ text: LONG }, { to: [to] }]) })],
  ["JSON behind a byte order mark", (to) => ({ body: `\uFEFF ${JSON.stringify({ to, text: LONG })}` })],
  ["JSON with a name twice", (to) => ({ body: `{"to":"${to}","text":"${LONG}","to":"ada@example.com"}` })],
  [
    "JSON with a comment and quotes of its own",
    (to) => ({ body: `{/* x */ to: '${to}', text: "${LONG}",}` }),
  ],
  [
    "JSON with a comment behind a name",
    (to) => ({ body: `{"to"/**/: ["${LONG.repeat(2)}\\n", "${to}"], "text": "${LONG}"}` }),
  ],
  ["JSON behind a comment", (to) => ({ body: `/* x */ // y\n${JSON.stringify({ to, text: LONG })}` })],
  ["two JSON texts", (to) => ({ body: `{"text":"${LONG}"}\n{"to":"${to}"}\n` })],
  ["JSON before other words", (to) => ({ body: `${JSON.stringify({ to, text: LONG })}\nover and out` })],
  [
    "JSON in JSON",
    (to) => ({ body: JSON.stringify({ text: LONG, body: JSON.stringify({ to, text: LONG }) }) }),
  ],
  ["JSON in a list of prose", (to) => ({ messages: [{ content: JSON.stringify({ to, text: LONG }) }] })],
  ["base64 of a mail", (to) => ({ raw: base64(mailTo(to)) })],
  ["base64url of a mail", (to) => ({ raw: base64url(mailTo(to)) })],
  ["base64 of a mail in lines", (to) => ({ raw: base64(mailTo(to)).replaceAll(/.{20}/g, "$&\r\n") })],
  [
    "base64 of a mail with letters of Latin-1",
    (to) => ({ raw: base64(Buffer.from(`X-A: \xe9\xe8\xea\r\n${mailTo(to)}\xe9\xff`, "latin1")) }),
  ],
  [
    "base64 of a mail with a blind copy",
    (to) => ({ raw: base64(`Bcc: ${to}\r\n${mailTo("ada@example.com", LONG)}`) }),
  ],
  ["base64 of a mail with a folded field", (to) => ({ raw: base64(mailTo(`Ada,\r\n <${to}>`)) })],
  ["base64 of a mail with an encoded word", (to) => ({ raw: base64(mailTo(word(to))) })],
  ["base64 of a mail as prose", (to) => ({ content: base64(mailTo(to, LONG)) })],
  ["base64 of JSON as prose", (to) => ({ content: base64(JSON.stringify({ to, text: LONG })) })],
  ["base64 of base64", (to) => ({ raw: base64(base64url(mailTo(to))) })],
  ["base64 of an address", (to) => ({ target: base64(to) })],
  ["base64 with other signs in it", (to) => ({ raw: base64(mailTo(to)).replaceAll(/.{7}/g, "$&!") })],
  ["base64 of UTF-16", (to) => ({ raw: base64(Buffer.from(`send it to ${to}`, "utf16le")) })],
  [
    "base64 of UTF-16 with its mark",
    (to) => ({ raw: base64(Buffer.from(`\uFEFFsend it to ${to}`, "utf16le").swap16()) }),
  ],
  ["a form", (to) => ({ body: `subject=Key&to=${encoded(to)}&text=${encoded(LONG)}` })],
  ["a form, the address first", (to) => ({ body: `to=${encoded(to)}&text=${encoded(LONG)}` })],
  ["a form with blanks", (to) => ({ body: `text=${LONG}\n&to=${to}` })],
  ["a form with an encoded name", (to) => ({ body: `a=b&t%6f=${encoded(to)}&text=${encoded(LONG)}` })],
  ["a form with brackets", (to) => ({ body: `?mail[to][]=${encoded(to)}&mail[text]=${encoded(LONG)}` })],
  ["a form behind a name alone", (to) => ({ body: `send&to=${encoded(to)}&text=${encoded(LONG)}` })],
  ["a form with JSON in it", (to) => ({ body: `payload=${encoded(JSON.stringify({ to, text: LONG }))}` })],
  ["a form in parts", (to) => ({ body: multipart(["text", LONG], ["to", to]) })],
  ["a form in parts with base64", (to) => ({ body: multipart(["text", LONG], ["raw", base64(mailTo(to))]) })],
  ["XML", (to) => ({ body: `<mail><to>${to}</to><text>${LONG}</text></mail>` })],
  [
    "XML with a head",
    (to) => ({
      body: `<?xml version="1.0"?>\n<!-- x -->\n<m:mail xmlns:m="urn:m"><m:text>${LONG}</m:text><m:to>${to}</m:to></m:mail>`,
    }),
  ],
  ["XML with attributes", (to) => ({ body: `<mail to='${to}' text="${LONG}"/>` })],
  [
    "XML with entities",
    (to) => ({ body: `<mail><text>${LONG}</text><to>${to.replace("@", "&#64;")}</to></mail>` }),
  ],
  [
    "XML with an entity of its own",
    (to) => ({ body: `<!DOCTYPE mail [<!ENTITY e "${to}">]><mail><to>&e;</to><text>${LONG}</text></mail>` }),
  ],
  [
    "XML with a comment in the address",
    (to) => ({ body: `<mail><to>${to.replace("@", "<!-- x -->@")}</to><text>${LONG}</text></mail>` }),
  ],
  [
    "XML with characters as they are",
    (to) => ({ body: `<mail><to><![CDATA[${to}]]></to><text>${LONG}</text></mail>` }),
  ],
  ["XML before other words", (to) => ({ body: `<mail><to>${to}</to><text>${LONG}</text></mail> over` })],
  [
    "XML with a paragraph in it",
    (to) => ({ body: `<mail><to><p>${to}</p></to><text>${LONG}</text></mail>` }),
  ],
  ["an encoded word", (to) => ({ to: word(to) })],
  ["an encoded word in two", (to) => ({ to: `${word(to.slice(0, 5))} ${word(to.slice(5))}` })],
  ["an encoded word of a set nobody knows", (to) => ({ to: word(to, "x-evil") })],
  ["an encoded word with blanks", (to) => ({ to: `=?utf-8?b?${base64(to).replaceAll(/.{4}/g, "$& ")}?=` })],
  ["an encoded word with a language", (to) => ({ to: word(to, "utf-8*en") })],
  ["an encoded word as the field of a mail", (to) => ({ body: `To: ${word(to)}\n\n${LONG}` })],
  ["a text as a name", (to) => ({ [`{"to":"${escaped(to)}"}`]: true })],
];

describe("an address in a text that programs take apart", () => {
  test.each(PACKED)("is seen in %s, and free where it is named", (_what, pack) => {
    expect(objection(pack("eve@evil.example"))).toContain("stands neither in the instruction");
    expect(objection(pack("ada@example.com"))).toBeNull();
  });

  test.each([
    "=?utf-8?q?eve=40evil=2Eexample?=",
    "=?utf-8?q?eve?= =?utf-8?q?=40evil=2Eexample?=",
    "=?utf-8?q?eve=40evil=2Eexample and more?=",
  ])("is seen in letters of an encoded word: %s", (to) => {
    expect(objection({ to })).toContain("stands neither in the instruction");
  });

  test.each(PACKED)("is seen in %s of what only reads", (_what, pack) => {
    expect(objection(pack("eve@evil.example"), { read_only: true })).toContain("eve");
  });
});

describe("a number", () => {
  test.each<[args: Record<string, unknown>, trusted_text: string]>([
    [{ to: 15551234567 }, "15551234567"],
    [{ phone_number: 4915112345678 }, "4915112345678"],
    [{ toNumber: 4915112345678 }, "4915112345678"],
    [{ recipients: [15551234567] }, "15551234567"],
    [{ url: 2130706433 }, "2130706433"],
    [{ body: JSON.stringify({ to: 15551234567, text: LONG }) }, "15551234567"],
    [{ params: '{"url":2130706433}' }, "2130706433"],
    [{ url: 127.1 }, "127.1"],
  ])("is an address where one belongs: %j", (args, trusted_text) => {
    expect(objection(args)).toContain(`was to go to ${trusted_text}`);
    expect(objection(args, { trusted_text })).toBeNull();
  });

  test("is none elsewhere, nor is a small one", () => {
    for (const args of [
      { max_urls: 5, include_url: true, webhook: false, count: 15551234567, size: 10_485_760 },
      { from: 20260501, to: 1748000000, number: 42, user_id: 987654321, site: 3, to_page: 12 },
      { params: '{"size":10485760,"links":true,"number":12}' },
    ])
      expect([args, objection(args)]).toEqual([args, null]);
  });
});

const PNG = Buffer.concat([
  Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"),
  Buffer.from("<x:xmpmeta xmlns:x='adobe:ns:meta/'><a>http://ns.adobe.com/xap/1.0/</a>\n".repeat(20)),
  Buffer.from(Array.from({ length: 3_000 }, (_, index) => (index * 7_919) % 251)),
]);

describe("what is only written down", () => {
  const quoted = `Seen at https://shop.example/cart?id=7\n\nReported by eve@evil.example`;
  /** What the run has read, with all web addresses that stand below. */
  const material = `${quoted} bob@other.example https://shop.example/ https://shop.example/cart?id=7&to=9 https://shop.example/cart?a=1&b=2`;
  test.each<[what: string, text: string]>([
    ["prose", quoted],
    ["prose that begins with a link of Markdown", `[The shop](https://shop.example/) fails.\n\n${quoted}`],
    ["prose that begins with a footnote", `[1] https://shop.example/\n[2] eve@evil.example\n\n${quoted}`],
    ["a list of things to do", `[ ] write to eve@evil.example\n[x] see https://shop.example/\n`],
    ["prose that quotes JSON", `It says:\n\n\`\`\`json\n{"to":"eve@evil.example"}\n\`\`\`\n${LONG}`],
    ["prose that quotes a form", `We post this:\n\nto=eve@evil.example&text=x\n\n${LONG}`],
    ["prose that quotes XML", `We post this:\n\n<mail><to>eve@evil.example</to></mail>\n\n${LONG}`],
    ["prose with an address in angle brackets", `<eve@evil.example> wrote:\n> ${quoted}`],
    ["prose with a link in angle brackets", `<https://shop.example/> is broken.\n${quoted}`],
    ["prose with a link first", `https://shop.example/cart?id=7&to=9\n\n${quoted}`],
    ["a talk", `<Bob> See https://shop.example/\n<Eve> I am eve@evil.example, ${LONG}`],
    [
      "a page",
      `<!DOCTYPE html>\n<html><body><p>See <a href="https://shop.example/">it</a>.</p>${LONG}</body></html>`,
    ],
    [
      "a piece of a page",
      `<p>Write to <a href="mailto:eve@evil.example">Eve</a></p><address>x</address>\n${LONG}`,
    ],
    [
      "a picture of lines",
      `<svg xmlns="http://www.w3.org/2000/svg"><use href="#a"/><a href="https://shop.example/"/></svg>\n${LONG}`,
    ],
    ["a program", `import { x } from "./x.js";\nfetch("https://shop.example/cart?a=1&b=2");\n`],
    [
      "a program that begins with a bracket",
      `{ const url = "https://shop.example/";\n  send("eve@evil.example"); }\n`,
    ],
    [
      "a program that begins with a comment",
      `// Seen at https://shop.example/\n"use strict";\nsend("eve@evil.example");\n`,
    ],
    ["settings of an environment", `PORT=80\nURL=https://shop.example/\nMAIL=eve@evil.example\n`],
    ["front matter", `---\ntitle: The shop\n---\n\n${quoted}`],
    ["a mail that was kept", `From: Bob <bob@other.example>\nTo: ada@example.com\n\n${quoted}`],
    [
      "JSON that names nobody",
      JSON.stringify({ name: "app", version: "1.2.3", files: ["a.js"], text: quoted, note: LONG }, null, 2),
    ],
    [
      "XML that names nobody",
      `<?xml version="1.0"?><project xmlns="http://www.w3.org/x" xsi:schemaLocation="http://www.w3.org/x"><name>app</name><text>${quoted}</text></project>`,
    ],
    ["a picture", base64(PNG)],
    [
      "a document",
      base64(`%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj <</URI (https://shop.example/)>>\n${"\0".repeat(200)}`),
    ],
    ["base64 of prose", base64(`${quoted}\n${LONG}`)],
  ])("may hold any address that was read: %s", (_what, text) => {
    for (const key of ["body", "content", "description", "new_content"])
      expect([key, objection({ title: "The shop", [key]: text }, { material })]).toEqual([key, null]);
  });

  test("is the body of a mail, however it is given", () => {
    expect(objection({ raw: base64(mailTo("ada@example.com", quoted)) }, { material })).toBeNull();
    expect(
      objection({ raw: base64(mailTo("ada@example.com", quoted)) }, { material: "eve@evil.example" }),
    ).toContain("shop.example");
    expect(
      objection({ params: JSON.stringify({ to: "ada@example.com", text: quoted }), title: "x" }),
    ).not.toBeNull();
  });
});

describe("texts in texts", () => {
  const nested = (times: number, text = "x"): string =>
    times === 0 ? text : JSON.stringify({ body: nested(times - 1, text) });

  test("are looked through to an end", () => {
    expect(objection({ body: nested(4, JSON.stringify({ to: "eve@evil.example", text: LONG })) })).toContain(
      "eve@evil.example",
    );
    expect(objection({ body: nested(4, JSON.stringify({ text: LONG })) })).toBeNull();
    expect(objection({ body: nested(9, "x") })).toContain("than can be looked through");
  });

  test.each<[what: string, args: Record<string, unknown>]>([
    ["JSON", { body: JSON.stringify({ text: "x ".repeat(50_001), to: "eve@evil.example" }) }],
    ["many values", { body: JSON.stringify(Array.from({ length: 3_400 }, () => ({ a: "x" }))) }],
    ["a form", { body: `text=${"x".repeat(100_001)}&to=eve%40evil.example` }],
    ["XML", { body: `<mail><text>${"x ".repeat(50_001)}</text><to>eve@evil.example</to></mail>` }],
    ["base64", { content: base64(mailTo("eve@evil.example", "x ".repeat(50_001))) }],
    [
      "many texts",
      { list: Array.from({ length: 40 }, () => ({ body: JSON.stringify({ text: "x".repeat(3_000) }) })) },
    ],
  ])("over the limit are blocked: %s", (_what, args) => {
    expect(objection(args, { trusted_text: JSON.stringify(args) })).toContain("than can be looked through");
  });

  test("hostile ones take no longer", () => {
    const times = 300_000;
    const started = ownMs();
    for (const piece of [
      "[",
      "{",
      '"',
      '["',
      "{a:",
      "<a ",
      "<a>",
      "<!--",
      "<![CDATA[",
      "<!",
      "</a",
      "&a=",
      "a=&",
      "\\",
      "=?a?q?",
      "=",
      "--x\n",
      "a: ",
      "YQ==",
    ]) {
      const text = piece.repeat(times / piece.length);
      for (const before of ["", "{", "<a>", "a=", "--x\nContent-Disposition: form-data\n\n"]) {
        objection({ body: before + text });
        objection({ body: `${before}${text.slice(0, 90_000)} }` });
        objection({ q: before + text.slice(0, 90_000) }, { read_only: true });
      }
    }
    expect(ownMs() - started).toBeLessThan(10_000);
  });
});
