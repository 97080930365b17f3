import { describe, expect, test } from "bun:test";
import { type Caller, testApp } from "../support/app.ts";
import { indexAll } from "../support/index-all.ts";
import { mailroom } from "../support/mailroom.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { storeMessages } from "./archive.ts";

/** A search finds the same before messages are indexed and after it, but for what they came with. */
const TIMES = ["before messages are indexed", "once they are indexed"] as const;

describe.each(TIMES)("%s", (time) => {
  const ready = async (t: Parameters<typeof storeMessages>[0]) => {
    if (time === TIMES[1]) await indexAll(t.app);
  };

  test("words are found in subject, sender, instruction and result, in upper or lower case, and by their beginning", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    await storeMessages(t, ada.user, [
      { subject: "Invoice 42" },
      { sender: "invoices@example.com" },
      { instruction: "Pay this INVOICE" },
      { result: "The invoice is paid." },
      { error: "invoice", reason: "internal", model: "invoice" },
      { subject: "ÄRGER über Größe" },
      { subject: "100% of a_b\\c" },
    ]);
    await ready(t);
    expect(await subjectsOf(ada, "invoice")).toHaveLength(4);
    expect(await subjectsOf(ada, "invo")).toHaveLength(4);
    expect(await subjectsOf(ada, "voice")).toEqual([]);
    expect(await subjectsOf(ada, "iNVOICE 42")).toEqual(["Invoice 42"]);
    for (const words of ["ärger ÜBER", "arger uber", "grö*"])
      expect([words, await subjectsOf(ada, words)]).toEqual([words, ["ÄRGER über Größe"]]);
    for (const literal of ["100%", "a_b", "b\\c"])
      expect([literal, await subjectsOf(ada, literal)]).toEqual([literal, ["100% of a_b\\c"]]);
    for (const nothing of ["%", "' or 1=1 --", "x".repeat(200), "🎉", '"'])
      expect([nothing, await subjectsOf(ada, nothing)]).toEqual([nothing, []]);
  });

  test("phrases, words that must not stand there, places and filters hold all together", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const day = (date: string) => Date.parse(`${date}T12:00:00Z`) / 1_000;
    await storeMessages(t, ada.user, [
      { subject: "red apple", sender: "bob@a.example", created: day("2026-01-01") },
      { subject: "apple red", sender: "eve@b.example", created: day("2026-01-02"), tags: '["Q3"]' },
      { subject: "red pear apple", result: "bob", created: day("2026-01-03"), tags: '["q31"]' },
    ]);
    await ready(t);
    const cases: [string, string[]][] = [
      ["red apple", ["red pear apple", "apple red", "red apple"]],
      ['"red apple"', ["red apple"]],
      ["red -pear", ["apple red", "red apple"]],
      ["-pear", ["apple red", "red apple"]],
      ['red -"red apple"', ["red pear apple", "apple red"]],
      ["bob", ["red pear apple", "red apple"]],
      ["from:bob", ["red apple"]],
      ["from:example", ["apple red", "red apple"]],
      ["from:eve@b.example", ["apple red"]],
      ["subject:bob", []],
      ["tag:q3", ["apple red"]],
      ["tag:#Q3*", ["red pear apple", "apple red"]],
      ["after:2026-01-02", ["red pear apple", "apple red"]],
      ["before:2026-01-02", ["red apple"]],
      ["red after:2026-01-02 before:2026-01-03", ["apple red"]],
    ];
    for (const [q, subjects] of cases) expect([q, await subjectsOf(ada, q)]).toEqual([q, subjects]);
  });

  test("words of scripts without blanks are found, also those of two signs and of one", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    await storeMessages(t, ada.user, [
      { subject: "明日の東京都の会議" },
      { subject: "北京的天气很好" },
      { subject: "ใบแจ้งหนี้เดือนมีนาคม" },
      { subject: "회의 일정" },
    ]);
    await ready(t);
    const cases: [string, string[]][] = [
      ["東京", ["明日の東京都の会議"]],
      ["東京都", ["明日の東京都の会議"]],
      ["京都", ["明日の東京都の会議"]],
      ["京", ["北京的天气很好", "明日の東京都の会議"]],
      ["好", ["北京的天气很好"]],
      ["東都", []],
      ["会議 明日", ["明日の東京都の会議"]],
      ["หนี้", ["ใบแจ้งหนี้เดือนมีนาคม"]],
      ["หนา", []],
      ["회의", ["회의 일정"]],
    ];
    for (const [q, subjects] of cases) expect([q, await subjectsOf(ada, q)]).toEqual([q, subjects]);
  });

  test("a search finds nothing of others, by no kind of term", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const bob = await t.as("bob@example.com");
    await storeMessages(t, ada.user, [
      { subject: "needle in hay", sender: "eve@example.com", tags: '["needle"]' },
    ]);
    await storeMessages(t, bob.user, [{ subject: "own words" }]);
    await ready(t);
    for (const q of ["needle", "need*", '"needle in"', "from:eve", "tag:needle", "tag:n*", "needle -own"])
      for (const sort of ["date", "rank"])
        expect([q, (await bob.get(`/messages?sort=${sort}&q=${encodeURIComponent(q)}`)).body.items]).toEqual([
          q,
          [],
        ]);
    expect(await subjectsOf(bob, "-needle")).toEqual(["own words"]);
    expect(await subjectsOf(bob, "all")).toEqual([]);
  });

  test("pages go through all that fits once, whatever else has to fit, and say where it ends", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const rare = new Set([0, 1_500, 2_600, 4_400]);
    const rows = Array.from({ length: 4_500 }, (_, index) => ({
      subject: rare.has(index) ? `needle ${index}` : "hay",
      source: index % 3 === 0 ? ("api" as const) : ("email" as const),
      metadata: JSON.stringify(index % 500 === 0 ? { half: "yes" } : {}),
    }));
    await storeMessages(t, ada.user, rows);
    await ready(t);
    const needles = await pagesOf(ada, "q=NEEDLE&limit=50");
    expect(needles.flat()).toEqual(["needle 4400", "needle 2600", "needle 1500", "needle 0"]);
    // The time that a page looks for them is limited.
    if (time === TIMES[1]) expect(needles).toHaveLength(1);
    expect((await pagesOf(ada, "q=needle&limit=1")).flat()).toEqual(needles.flat());
    expect((await pagesOf(ada, "q=needle&source=api")).flat()).toEqual(["needle 1500", "needle 0"]);
    expect((await pagesOf(ada, "q=hay+OR+hay&limit=50")).flat()).toHaveLength(0);
    expect((await pagesOf(ada, "q=hay&metadata=half:yes")).flat()).toHaveLength(7);
    expect((await pagesOf(ada, "q=hay&limit=100")).flat()).toHaveLength(4_496);
  }, 60_000);

  test("a page says where the words stand", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const long = "hay ".repeat(100);
    await storeMessages(t, ada.user, [
      { subject: "An invoice", result: `${long}Größe: the invoice\nis paid ${long}`, instruction: "Nothing" },
    ]);
    await ready(t);
    const { body } = await ada.get(`/messages?q=${encodeURIComponent("invoice grosse OR* gro*")}`);
    expect(body.items).toEqual([]);
    const found = (await ada.get(`/messages?q=${encodeURIComponent("invoice gro*")}`)).body.items[0]
      .highlights;
    const marked = found.map(({ field, text, spans }: (typeof found)[number]) => [
      field,
      spans.map(([from, to]: [number, number]) => text.slice(from, to)),
    ]);
    expect(marked).toEqual([
      ["subject", ["invoice"]],
      ["result", ["Größe", "invoice"]],
    ]);
    expect(found[1].text.length).toBeLessThanOrEqual(240);
    expect((await ada.get("/messages")).body.items[0]).not.toHaveProperty("highlights");
  });
});

test("the sender's words, the material and the files of mail are found, and by whom and to whom it was", async () => {
  await using room = await mailroom({ model: { reply: () => "Resulting words." } });
  await room.send({
    subject: "Greetings",
    text: "Sum up\n\nOn Mon, Bob wrote:\n> quotedword here",
    attachments: [{ filename: "plan.txt", content_type: "text/plain", content: "filewords and more" }],
  });
  await room.drain();
  await room.send({ subject: "Other", text: "Sum up" });
  await room.drain();
  await indexAll(room.app);
  for (const q of ["quotedword", "filewords", "plan.txt", "has:file", "has:file greetings resulting"])
    expect([q, await subjectsOf(room.owner, q)]).toEqual([q, ["Greetings"]]);
  expect(await subjectsOf(room.owner, `to:${room.inbox.address}`)).toHaveLength(2);
  expect(await subjectsOf(room.owner, "to:nobody")).toEqual([]);
  const { highlights } = (await room.owner.get("/messages?q=filewords")).body.items[0];
  expect(highlights).toEqual([{ field: "files", text: "plan.txt filewords and more", spans: [[9, 18]] }]);
});

test("what changes is found as it is now: tags, a deletion, and its undoing", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const [row] = await storeMessages(t, ada.user, [{ subject: "one" }]);
  await indexAll(t.app);
  const path = `/messages/${row?.id}`;
  await ada.patch(path, { tags: ["paid"] });
  expect(await subjectsOf(ada, "tag:paid")).toEqual(["one"]);
  await indexAll(t.app);
  expect(await subjectsOf(ada, "tag:paid one")).toEqual(["one"]);
  await ada.delete(path);
  expect(await subjectsOf(ada, "one")).toEqual([]);
  await indexAll(t.app);
  t.clock.advance("20s");
  await ada.post(`${path}/restore`);
  expect(await subjectsOf(ada, "one")).toEqual(["one"]);
  await indexAll(t.app);
  expect(await subjectsOf(ada, "one")).toEqual(["one"]);
});

test("by rank, what is in the subject comes before what is in a result, and pages go on in that order", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const hay = "hay ".repeat(50);
  await storeMessages(t, ada.user, [
    { subject: "needle" },
    ...Array.from({ length: 30 }, (_, at) => ({ subject: `hay ${at}`, result: `${hay} needle ${hay}` })),
    { subject: `needle ${hay}` },
  ]);
  await indexAll(t.app);
  const pages = await pagesOf(ada, "q=needle&sort=rank&limit=7");
  expect(pages.flat()).toHaveLength(32);
  expect(new Set(pages.flat()).size).toBe(32);
  expect(pages[0]?.slice(0, 2)).toEqual(["needle", `needle ${hay}`]);
});

test("a tag finds a #tag of the instruction and a +tag of the recipient, whole", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  await ada.post("/v1/messages", { instruction: "Summarise #Q3 #sales" });
  await storeMessages(t, ada.user, [{ subject: "to +q3", tags: '["q3"]' }, { subject: "q3 #q3" }]);
  for (const tag of ["q3", "Q3", "#q3", "+q3"]) {
    const { items } = (await ada.get(`/messages?tag=${encodeURIComponent(tag)}`)).body;
    expect([tag, items.length]).toEqual([tag, 2]);
  }
  expect((await ada.get("/messages?tag=q")).body.items).toEqual([]);
  expect((await ada.get("/messages?tag=q3&q=summarise")).body.items).toHaveLength(1);
  expect((await ada.get("/messages?tag=sales&status=failed")).body.items).toEqual([]);
});

test("a private run is found by nothing", async () => {
  await using room = await mailroom({ model: { reply: () => "secretresult" } });
  await room.send({ text: "Sum secretwords up --private", subject: "secretsubject" });
  await room.drain();
  for (const _ of TIMES) {
    for (const q of ["secretsubject", "secretwords", "secretresult", "from:ada", "private"])
      expect([q, (await room.owner.get(`/messages?q=${q}`)).body.items]).toEqual([q, []]);
    await indexAll(room.app);
  }
});

test("a search refuses what is empty, too long or no day", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const refused = ["q=", "tag=", `q=${"x".repeat(201)}`, `tag=${"x".repeat(101)}`, "q=after:x", "q=has:x"];
  const wordy = [`q=${"x+".repeat(33)}`, `q="${"x+".repeat(33)}"`, `q=a+-"${"x+".repeat(32)}"`];
  expect((await ada.get(`/messages?q="${"x+".repeat(32)}"`)).status).toBe(200);
  for (const query of [...refused, ...wordy, "q=x&sort=size"]) {
    const answer = await ada.get(`/messages?${query}`);
    expect([query, answer.status]).toEqual([query, 422]);
  }
  const { errors } = (await ada.get("/messages?q=after:x")).body;
  expect(errors[0]).toMatchObject({ path: "query.q", message: expect.stringContaining("after:2026-03-31") });
  expect((await ada.get("/messages?q=x&cursor=nonsense")).body.code).toBe("invalid_cursor");
});

const HOSTILE = [
  '"',
  '""',
  '"" OR 1',
  "'",
  "\0",
  "a\0b",
  "NEAR(",
  "NEAR(a b, 2)",
  "^a",
  "a:b",
  ":",
  "::",
  "*",
  "a**",
  "* *",
  "-",
  "--",
  "- -a",
  "(",
  ")",
  "((((",
  "a AND",
  "NOT a",
  "OR",
  "{subject} : a",
  "{",
  "marks : all",
  "rowid:1",
  "message_texts match 'x'",
  "; drop table messages",
  'a" * OR "b',
  "🎉".repeat(99),
  "‮אבג שלום",
  "\ue000\ue000all",
  "\u2063\u2064",
  "́",
  "ÿþ",
  "𠮷",
  "\ud800",
  "from:",
  "tag:",
  'tag:"',
  "subject:-x",
  "x".repeat(200),
  "\n\t",
];

test.each(HOSTILE)("%j is only text", async (q) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await storeMessages(t, ada.user, [{ subject: "one" }, { subject: q, result: q, instruction: q }]);
  for (const _ of TIMES) {
    for (const sort of ["date", "rank"]) {
      const { status, body } = await ada.get(
        `/messages?sort=${sort}&q=${encodeURIComponent(q.toWellFormed())}`,
      );
      expect([status, Array.isArray(body.items)]).toEqual([200, true]);
      if (q !== "- -a" && !q.startsWith("subject:-")) expect(body.items.length).toBeLessThanOrEqual(1);
    }
    await indexAll(t.app);
  }
});

test("a random search finds the same before and after messages are indexed", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const chance = chanceFrom(seedFrom("SEARCH_SEED", "searches"));
  const pick = <T>(all: readonly T[]) => all[Math.floor(chance() * all.length)] as T;
  const WORDS = [
    "one",
    "ones",
    "two",
    "Größe",
    "grosse",
    "東京",
    "京都",
    "東",
    "a",
    "ab",
    "42",
    "ใบแจ้ง",
    "don't",
  ];
  const text = (count: number) =>
    Array.from({ length: count }, () => pick(WORDS)).join(pick([" ", "-", " "]));
  await storeMessages(
    t,
    ada.user,
    Array.from({ length: 150 }, () => ({
      subject: text(3),
      sender: `${pick(["ada", "bob"])}@x.org`,
      result: text(5),
    })),
  );
  const term = () =>
    pick([
      pick(WORDS),
      `"${text(2)}"`,
      `-${pick(WORDS)}`,
      `from:${pick(["ada", "bo"])}`,
      `subject:${pick(WORDS)}`,
      `${pick(WORDS).slice(0, 2)}*`,
    ]);
  const queries = Array.from({ length: 60 }, () =>
    Array.from({ length: 1 + Math.floor(chance() * 3) }, term).join(" "),
  );
  const answers = () => Promise.all(queries.map(async (q) => [q, await idsOf(ada, q)]));
  const before = await answers();
  await indexAll(t.app);
  expect(await answers()).toEqual(before);
});

async function idsOf(caller: Caller, q: string): Promise<string[]> {
  const pages = await walk(caller, `limit=100&q=${encodeURIComponent(q)}`);
  return pages.flat().map(({ message_id }) => message_id);
}

async function subjectsOf(caller: Caller, q: string): Promise<string[]> {
  return (await pagesOf(caller, `q=${encodeURIComponent(q)}`)).flat();
}

async function pagesOf(caller: Caller, query: string): Promise<string[][]> {
  return (await walk(caller, query)).map((page) => page.map(({ subject }) => subject));
}

/** All pages: one that took too long to find has few items, and a cursor. */
async function walk(caller: Caller, query: string): Promise<{ message_id: string; subject: string }[][]> {
  const pages: { message_id: string; subject: string }[][] = [];
  let cursor = "";
  do {
    const { body } = await caller.get(`/messages?${query}${cursor && `&cursor=${cursor}`}`);
    pages.push(body.items);
    cursor = body.next_cursor ?? "";
  } while (cursor !== "");
  return pages;
}
