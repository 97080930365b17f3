import { expect, test } from "bun:test";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { ownMs } from "../support/own-time.ts";

const MAX_FILE_BYTES = 262_144;
const BOM = "\ufeff";

test("an uploaded file becomes a context, to the byte", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const text = "Intro\r\n\r\n# Brand *voice*\r\n\r\nGrüße 👋\r\n";
  const answer = await upload(t, ada, text, "x.md");
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    title: "Brand *voice*",
    body: text,
    kind: "instruction",
    slug: "brand-voice",
    enabled: true,
    inbox_ids: null,
    size: Buffer.byteLength(text),
    created: t.app.now(),
    version: 1,
    updated: t.app.now(),
  });
  expect((await ada.get(`/contexts/${answer.body.id}`)).body).toEqual(answer.body);
  expect((await upload(t, ada, text, "x.md")).body.slug).toBe("brand-voice-2");
});

const TITLES: [name: string, text: string, title: string][] = [
  ["a heading", "# Title", "Title"],
  ["a heading below text", "text\n\n# Title\n# Other", "Title"],
  ["a heading after old Mac line ends", "text\r# Title\rmore", "Title"],
  ["three spaces before it", "   # Title", "Title"],
  ["four spaces before it, which is code", "    # Code\n\n# Title", "Title"],
  ["tabs after the sign", "#\t\tTitle\t", "Title"],
  ["closing signs", "# Title ###  ", "Title"],
  ["signs that close nothing", "# C#", "C#"],
  ["closing signs after such", "# C# #", "C#"],
  ["a sign without a space", "#hashtag\n# Title", "Title"],
  ["a heading of level two", "## Two\n# Title", "Title"],
  ["empty headings", "#\n# \n# #\n# Title", "Title"],
  ["fenced code", "```sh\n# comment\n```\n# Title", "Title"],
  ["fenced code with tildes", "~~~\n# comment\n```\n# comment\n~~~\n# Title", "Title"],
  ["a longer fence", "````\n```\n# comment\n```\n````\n# Title", "Title"],
  ["a fence that closes with spaces", "```\n# comment\n  ````  \n# Title", "Title"],
  ["a fence with words behind it, which closes nothing", "```\n# a\n``` b\n# c\n```\n# Title", "Title"],
  ["code in a line, which is no fence", "```code``` x\n# Title", "Title"],
  ["a fence that is never closed", "```\n# comment", "the-file"],
  ["no heading", "text", "the-file"],
  ["only a heading of level two", "## Two", "the-file"],
  ["a byte order mark", `${BOM}# Title`, "Title"],
  ["control characters", "# Ti\u0000t\u0007le", "Ti t le"],
  ["too many characters", `# ${"👋".repeat(300)}`, "👋".repeat(200)],
  ["a blank where it is cut", `# ${"x".repeat(199)} y`, "x".repeat(199)],
];

test.each(TITLES)("the title of a file with %s is found", async (_name, text, title) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { status, body } = await upload(t, ada, text, "the-file.md");
  expect([status, body.title, body.body]).toEqual([201, title, text.replace(BOM, "")]);
});

test.each([
  ["notes.md", "notes"],
  ["notes.v2.markdown", "notes.v2"],
  ["README", "README"],
  ["../../etc/House rules.md", "House rules"],
  ["C:\\Users\\ada\\Grüße.txt", "Grüße"],
  [".md", "Untitled"],
  [`${"x".repeat(300)}.md`, "x".repeat(200)],
])("without a heading a file called %p makes the title %p", async (name, title) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { status, body } = await upload(t, ada, "text", name);
  expect([status, body.title]).toEqual([201, title]);
});

test("a file is for the inboxes that the form names, in one part each", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const ids = await Promise.all([1, 2].map(async () => String((await ada.post("/inboxes", {})).body.id)));
  const file = part('name="file"; filename="a.md"', "text");
  const named = (id: string) => part('name="inbox_ids"', id);
  for (const few of [ids.slice(0, 1), ids]) {
    const answer = await uploadRaw(t, ada, file + few.map(named).join(""));
    expect([answer.status, answer.body.inbox_ids.toSorted()]).toEqual([201, few.toSorted()]);
  }
  const eve = await t.as("eve@example.com");
  for (const [caller, id] of [
    [eve, String(ids[0])],
    [ada, "desk"],
  ] as const) {
    const { status, body } = await uploadRaw(t, caller, file + named(id));
    expect([status, body.errors[0].path]).toEqual([422, expect.stringMatching(/^body\.inbox_ids/)]);
  }
});

test("a part without a file name is a file as well", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await uploadRaw(t, ada, part('name="file"; filename=""', "text"));
  expect([answer.status, answer.body.title, answer.body.body]).toEqual([201, "Untitled", "text"]);
});

test("a file of 256 KB is taken, and one byte more is not", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const whole = await upload(t, ada, "x".repeat(MAX_FILE_BYTES), "x.md");
  expect([whole.status, whole.body.size]).toEqual([201, MAX_FILE_BYTES]);
  const more = await upload(t, ada, "x".repeat(MAX_FILE_BYTES + 1), "x.md");
  expect([more.status, more.body.code, more.body.errors]).toMatchObject([
    422,
    "validation_error",
    [{ path: "body.file", code: "file_too_large" }],
  ]);
});

test("a form over 512 KB is not even read to its end", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { status, body } = await upload(t, ada, "x".repeat(525_000), "x.md");
  expect([status, body.code]).toEqual([413, "payload_too_large"]);
  expect(body.detail).toContain("512 KB");
});

test("a file that takes long to look through does not", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const started = ownMs();
  for (const text of [
    `# a${" ".repeat(250_000)}b\u2028`,
    `# ${"# ".repeat(125_000)}b`,
    "`".repeat(250_000),
    `#${" ".repeat(250_000)}\u2028`,
    "#\n".repeat(125_000),
    "~~~\n`".repeat(50_000),
  ])
    expect((await upload(t, ada, text, "x.md")).status).toBe(201);
  expect(ownMs() - started).toBeLessThan(5_000);
});

test("a form of as many parts as fit is looked through at once, and one that is no multipart form not at all", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const parts = Array.from({ length: 9_000 }, (_, number) => part(`name="p${number}"`, ""));
  const fields = Array.from({ length: 70_000 }, (_, number) => `p${number}=`);
  const started = ownMs();
  for (let count = 0; count < 5; count += 1)
    expect((await uploadRaw(t, ada, parts.join(""))).status).toBe(422);
  const answer = await t.request("/contexts/upload", {
    method: "POST",
    headers: { "x-api-key": ada.key, "content-type": "application/x-www-form-urlencoded" },
    body: fields.join("&").slice(0, 524_288),
  });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path: "body.file", code: "missing" }]);
  expect(ownMs() - started).toBeLessThan(1_000);
});

test.each([
  ["Latin-1", Uint8Array.of(0x47, 0x72, 0xfc, 0xdf, 0x65)],
  ["UTF-16", Uint8Array.of(0xff, 0xfe, 0x41, 0x00)],
  ["a picture", Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a)],
  ["half of a character", Uint8Array.of(0x41, 0xe2, 0x82)],
  ["a surrogate", Uint8Array.of(0xed, 0xa0, 0x80)],
])("%s is refused: it is not UTF-8", async (_name, bytes) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await upload(t, ada, bytes, "x.md");
  expect([answer.status, answer.body.errors[0]]).toMatchObject([
    422,
    { path: "body.file", code: "file_not_utf8" },
  ]);
});

test("a file without text is refused", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const text of ["", BOM]) {
    const answer = await upload(t, ada, text, "x.md");
    expect([answer.status, answer.body.errors[0]]).toMatchObject([
      422,
      { path: "body.file", code: "missing" },
    ]);
  }
});

test("a form without the file is refused", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const twice = part('name="file"; filename="a.md"', "a") + part('name="file"; filename="b.md"', "b");
  for (const [form, code] of [
    [part('name="document"; filename="a.md"', "a"), "missing"],
    [part('name="__proto__"; filename="a.md"', "a"), "missing"],
    [part('name="File"; filename="a.md"', "a"), "missing"],
    ["", "missing"],
    [part('name="file"', "a"), "not_a_file"],
    [twice, "not_a_file"],
  ] as const) {
    const answer = await uploadRaw(t, ada, form);
    expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path: "body.file", code }]);
  }
});

test("what is no form is refused, and told what is wanted", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const [content_type, body] of [
    ["application/json", "{}"],
    ["text/markdown", "# Title"],
    ["multipart/form-data", "--B\r\n"],
    ["multipart/form-data; boundary=B", "no boundary in it"],
    ["", ""],
  ] as const) {
    const answer = await t.request("/contexts/upload", {
      method: "POST",
      headers: { "x-api-key": ada.key, ...(content_type === "" ? {} : { "content-type": content_type }) },
      ...(body === "" ? {} : { body }),
    });
    expect([answer.status, answer.body.errors[0]]).toMatchObject([
      422,
      { path: "body.file", code: "missing" },
    ]);
  }
});

test("other parts are ignored, but for a kind", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const file = part('name="file"; filename="a.md"', "# A");
  const ignored = await uploadRaw(t, ada, file + part('name="title"', "Mine") + part('name="slug"', "mine"));
  expect([ignored.status, ignored.body.title, ignored.body.slug]).toEqual([201, "A", "a"]);
  const known = await uploadRaw(t, ada, file + part('name="kind"', "knowledge"));
  expect([known.status, known.body.kind]).toEqual([201, "knowledge"]);
  const unknown = await uploadRaw(t, ada, file + part('name="kind"', "macro"));
  expect([unknown.status, unknown.body.errors[0].path]).toEqual([422, "body.kind"]);
});

function upload(
  t: TestApp,
  caller: Caller,
  content: string | Uint8Array<ArrayBuffer>,
  name: string,
): Promise<Answer> {
  const body = new FormData();
  body.append("file", new File([content], name));
  return t.request("/contexts/upload", { method: "POST", headers: { "x-api-key": caller.key }, body });
}

function uploadRaw(t: TestApp, caller: Caller, parts: string): Promise<Answer> {
  return t.request("/contexts/upload", {
    method: "POST",
    headers: { "x-api-key": caller.key, "content-type": "multipart/form-data; boundary=B" },
    body: `${parts}--B--\r\n`,
  });
}

function part(disposition: string, text: string): string {
  return `--B\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${text}\r\n`;
}
