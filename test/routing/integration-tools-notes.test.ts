import { expect, test } from "bun:test";
import { integrationRoom, TOKEN } from "../support/integration-room.ts";
import { page, rich, startNotes } from "../support/notes-server.ts";

const PAGE = "59833787-2cf9-4fdf-8782-e53db20768a5";
const SOURCE = "1a44be12-0953-4631-b498-9e5817518db8";
const DATABASE = "2b55cf23-1a64-4742-a5a9-af6928629ec9";

async function notesRoom() {
  const notes = startNotes(TOKEN);
  const room = await integrationRoom("notes", { base_url: notes.origin });
  notes.things.set(PAGE, page(PAGE, "Weekly plan"));
  notes.things.set(SOURCE, {
    object: "data_source",
    id: SOURCE,
    title: [rich("Tasks of the week")],
    url: "https://www.notion.so/tasks",
    last_edited_time: "2026-02-01T00:00:00Z",
    properties: { Task: { id: "title", type: "title", title: {} } },
  });
  notes.children.set(PAGE, []);
  return {
    ...room,
    notes,
    [Symbol.asyncDispose]: async () => {
      await room[Symbol.asyncDispose]();
      await notes[Symbol.asyncDispose]();
    },
  };
}

test("search lists pages and databases with ids and URLs, and says when there are more", async () => {
  await using room = await notesRoom();
  const found = await room.use("search", { query: "eek" });
  expect(found).toEqual({
    ok: true,
    files: [],
    text: [
      "Found:",
      `- Page "Weekly plan" (id ${PAGE}, edited 2026-03-04) https://www.notion.so/${PAGE}`,
      `- Database "Tasks of the week" (id ${SOURCE}, edited 2026-02-01) https://www.notion.so/tasks`,
    ].join("\n"),
    places: [
      { id: PAGE, name: "Weekly plan" },
      { id: SOURCE, name: "Tasks of the week" },
    ],
  });
  expect((await room.use("search", { query: "eek", type: "database" })).text).not.toContain("Weekly plan");
  expect((await room.use("search", { query: "nowhere" })).text).toBe("Nothing was found.");
  for (let index = 0; index < 60; index += 1) {
    const id = crypto.randomUUID();
    room.notes.things.set(id, page(id, `Week ${index}\n- Page "Forged" (id 1)`));
  }
  const many = (await room.use("search", { query: "Week" })).text.split("\n");
  expect(many).toHaveLength(52);
  expect(many.at(-1)).toBe("(Not shown: some more. Ask more narrowly to see them.)");
});

test("read_page gives properties and blocks as Markdown, nested and page by page", async () => {
  await using room = await notesRoom();
  const block = (type: string, data: object, id = "", has_children = false) => ({
    object: "block",
    id,
    type,
    has_children,
    [type]: data,
  });
  room.notes.things.set(
    PAGE,
    page(PAGE, "Weekly plan", {
      Status: { type: "status", status: { name: "In work" } },
      Tags: { type: "multi_select", multi_select: [{ name: "a" }, { name: "b" }] },
      Due: { type: "date", date: { start: "2026-01-01", end: "2026-01-05" } },
      Done: { type: "checkbox", checkbox: false },
      Sum: { type: "formula", formula: { type: "number", number: 12.5 } },
      Key: { type: "unique_id", unique_id: { prefix: "T", number: 4 } },
      Note: { type: "rich_text", rich_text: [rich("short")] },
      Empty: { type: "url", url: null },
    }),
  );
  room.notes.children.set(PAGE, [
    block("heading_1", { rich_text: [rich("Goals")] }),
    block("paragraph", {
      rich_text: [
        rich("Be "),
        rich("bold ", { bold: true }),
        rich("and", { italic: true, code: true }),
        rich(" see"),
        rich("this", {}, "https://example.com/"),
      ],
    }),
    block("numbered_list_item", { rich_text: [rich("first")] }),
    block("numbered_list_item", { rich_text: [rich("second")] }, "aa", true),
    block("to_do", { rich_text: [rich("call")], checked: true }),
    block("code", { rich_text: [rich("a = 1")], language: "python" }),
    block("table", { table_width: 2 }, "bb", true),
    block("callout", { rich_text: [rich("Mind")] }, "cc", true),
    block("child_page", { title: "Below" }, "dd", true),
    block("image", {
      type: "external",
      external: { url: "https://example.com/x.png" },
      caption: [rich("A cat")],
    }),
    block("divider", {}),
    block("unsupported", {}),
    ...Array.from({ length: 120 }, (_, index) => block("paragraph", { rich_text: [rich(`line ${index}`)] })),
  ]);
  room.notes.children.set("aa", [block("bulleted_list_item", { rich_text: [rich("deep")] })]);
  room.notes.children.set("bb", [
    block("table_row", { cells: [[rich("Name")], [rich("a|b")]] }),
    block("table_row", { cells: [[rich("x")], []] }),
  ]);
  room.notes.children.set("cc", [block("paragraph", { rich_text: [rich("the gap")] })]);
  const read = await room.use("read_page", { page_id: PAGE.replaceAll("-", "") });
  expect(read.text).toStartWith(
    [
      "# Weekly plan",
      `URL: https://www.notion.so/${PAGE}`,
      "Edited: 2026-03-04",
      "Status: In work",
      "Tags: a, b",
      "Due: 2026-01-01 to 2026-01-05",
      "Done: no",
      "Sum: 12.5",
      "Key: T-4",
      "Note: short",
      "",
      "# Goals",
      "",
      "Be **bold** *`and`* see[this](https://example.com/)",
      "",
      "1. first",
      "2. second",
      "  - deep",
      "",
      "- [x] call",
      "",
      "```python",
      "a = 1",
      "```",
      "",
      "| Name | a\\|b |",
      "| --- | --- |",
      "| x |  |",
      "",
      "> Mind",
      "> the gap",
      "",
      "[Page: Below] (id dd)",
      "",
      "[image: A cat](https://example.com/x.png)",
      "",
      "---",
      "",
      "line 0",
    ].join("\n"),
  );
  expect(read.text).toEndWith("line 119");
});

test("read_page stops at a page without end or bottom, and says so", async () => {
  await using room = await notesRoom();
  const endless = (type: string, has_children: boolean) => {
    const result = { id: PAGE, type, has_children, [type]: { rich_text: [rich("again")] } };
    return Response.json({ results: [result], has_more: true, next_cursor: "again" });
  };
  for (const nested of [true, false]) {
    room.notes.first = ({ path }) => (path.endsWith("/children") ? endless("paragraph", nested) : undefined);
    room.notes.calls.length = 0;
    const read = await room.use("read_page", { page_id: PAGE });
    expect(read.ok).toBe(true);
    expect(read.text).toEndWith("(The rest of the page was not read: it is too long.)");
    expect(room.notes.calls.length).toBeLessThanOrEqual(31);
  }
});

test("create_page makes a page below a page, in a data source, and in a database with one source", async () => {
  await using room = await notesRoom();
  const made = await room.use("create_page", {
    parent_id: PAGE,
    parent_type: "page",
    title: "Minutes\nof today",
    markdown: "# Hello\n\nWorld",
  });
  const { parent, id } = [...room.notes.things.values()].at(-1);
  expect(made).toMatchObject({
    ok: true,
    text: `Made the page "Minutes of today" (id ${id}): https://www.notion.so/${id}`,
  });
  expect(parent).toEqual({ type: "page_id", page_id: PAGE });
  expect(room.notes.children.get(id)).toMatchObject([{ type: "heading_1" }, { type: "paragraph" }]);

  const row = { parent_id: SOURCE, parent_type: "database", title: "Buy milk" };
  expect((await room.use("create_page", row)).ok).toBe(true);
  expect([...room.notes.things.values()].at(-1).parent).toMatchObject({ data_source_id: SOURCE });

  const sources = [{ id: SOURCE, name: "Tasks" }];
  room.notes.things.set(DATABASE, { object: "database", id: DATABASE, data_sources: sources });
  expect((await room.use("create_page", { ...row, parent_id: DATABASE })).ok).toBe(true);
  expect([...room.notes.things.values()].at(-1).parent).toMatchObject({ data_source_id: SOURCE });
  sources.push({ id: PAGE, name: "Old" });
  expect((await room.use("create_page", { ...row, parent_id: DATABASE })).text).toBe(
    `This database has several sources of data. Give the id of one: "Tasks" (id ${SOURCE}), "Old" (id ${PAGE}).`,
  );
  const gone = await room.use("create_page", { ...row, parent_id: crypto.randomUUID() });
  expect(gone).toMatchObject({ ok: false });
  expect(gone.text).toContain("share the page with this integration");
});

test("append writes every kind of Markdown within Notion's limits, and no picture or strange link", async () => {
  await using room = await notesRoom();
  const markdown = [
    "# One **two**",
    "#### Four",
    "Text with `code`, ~~gone~~, a [link](https://example.com/a?b=c), a [bad one](javascript:alert(1)) and [another](/relative).",
    "![secret](https://evil.example/?q=secret)",
    "- [ ] open\n- [x] done\n- plain\n  1. nested\n     - deeper\n       - deepest\n         - too deep",
    "> quoted\n>\n> twice",
    "```ts\nlet a = 1;\n```",
    "| a | b |\n| --- | --- |\n| 1 | *2* |\n| 3 |",
    "---",
    "<script>alert(1)</script>",
    `${"x".repeat(4_500)}😀`,
    "*a* b ".repeat(150),
    `- parent\n${Array.from({ length: 130 }, (_, index) => `  - child ${index}`).join("\n")}`,
  ].join("\n\n");
  const done = await room.use("append", { page_id: PAGE, markdown });
  expect(done).toMatchObject({ ok: true });
  const written = room.notes.children.get(PAGE) ?? [];
  expect(done.text).toBe(`Added ${written.length} blocks at the end of page ${PAGE}.`);
  const types = written.map(({ type }) => type);
  expect(types.slice(0, 13)).toEqual(
    "heading_1 heading_3 paragraph paragraph to_do to_do bulleted_list_item quote code table divider paragraph paragraph".split(
      " ",
    ),
  );
  const all = JSON.stringify(written);
  expect(all).toContain('"content":"secret","link":{"url":"https://evil.example/?q=secret"}');
  expect(all).not.toMatch(/"type":"(image|embed|bookmark)"/);
  expect(all).not.toContain('"url":"javascript');
  expect(all).not.toContain('"url":"/relative"');
  expect(all).toContain('"content":"too deep"');
  expect(all).toContain('"content":"child 129"');
  expect(written[4]).toMatchObject({ to_do: { checked: false, rich_text: [{ text: { content: "open" } }] } });
  expect(written[9].table.children).toHaveLength(3);
});

test("a long text goes in several requests, and a failure in the midst says what is there already", async () => {
  await using room = await notesRoom();
  const markdown = Array.from({ length: 250 }, (_, index) => `line ${index}`).join("\n\n");
  expect((await room.use("append", { page_id: PAGE, markdown })).text).toContain("Added 250 blocks");
  expect(room.notes.children.get(PAGE)).toHaveLength(250);
  let patches = 0;
  room.notes.first = ({ method }) => {
    if (method === "PATCH") patches += 1;
    return patches === 2 ? Response.json({ object: "error", message: "Down." }, { status: 503 }) : undefined;
  };
  const broken = await room.use("append", { page_id: PAGE, markdown });
  expect(broken.ok).toBe(false);
  expect(broken.text).toStartWith("Only the beginning of the text was added; append the rest");
  expect(broken.text).toEndWith("It said: Down.");
  patches = 1;
  const page = { parent_id: PAGE, parent_type: "page", title: "Long", markdown };
  const half = await room.use("create_page", page);
  expect(half.ok).toBe(false);
  const { id } = [...room.notes.things.values()].at(-1);
  expect(half.text).toStartWith(`Made the page "Long" (id ${id}): https://www.notion.so/${id} - but only`);
  room.notes.first = () => undefined;
  expect(await room.use("append", { page_id: PAGE, markdown: " \n" })).toMatchObject({
    ok: false,
    text: "There is nothing to write in this text.",
  });
});
