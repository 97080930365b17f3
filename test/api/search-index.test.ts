import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { plainText } from "../../src/lib/split-words.ts";
import { placeOf } from "../../src/resources/messages/search/places.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { indexAll } from "../support/index-all.ts";
import { mailroom } from "../support/mailroom.ts";
import { pass, purge } from "../support/purge.ts";
import { databaseFolder, everyByte } from "../support/whole-folder.ts";
import { storeMessages } from "./archive.ts";

/** What is indexed, one object a message, newest first. */
async function indexed({ app }: TestApp) {
  await indexAll(app);
  const rows = await app.db.selectFrom("indexed_messages").selectAll().orderBy("place", "desc").execute();
  return rows.map((stored) => {
    const { place: _, slot: __, ...row } = stored;
    return {
      ...row,
      ...Object.fromEntries(Object.entries(row).map(([name, text]) => [name, plainText(text)])),
    };
  });
}

/** Whether the index itself has a word, whosever it is. */
async function has({ app }: TestApp, word: string): Promise<boolean> {
  const { rows } = await sql<{
    term: string;
  }>`select term from vocabulary where term like ${`%${word}`}`.execute(app.db);
  return rows.length > 0;
}

const withVocabulary = ({ app }: TestApp) =>
  sql`create virtual table if not exists temp.vocabulary using fts5vocab (main, message_texts, row)`.execute(
    app.db,
  );

/** The index fits the texts that it was made of. */
const isSound = ({ app }: TestApp) =>
  sql`insert into message_texts (message_texts, rank) values ('integrity-check', 1)`.execute(app.db);

const MAIL = {
  subject: "Invoice of March",
  text: "Sum up\n\nOn Mon, Bob wrote:\n> quotedword here",
  attachments: [{ filename: "plan.txt", content_type: "text/plain", content: "filewords and more" }],
};

describe("a message that has ended", () => {
  test("is indexed with its words, its sender, what came of it, its material and its files", async () => {
    await using room = await mailroom({ model: { reply: () => "All resulted well." } });
    await room.send(MAIL);
    expect(await indexed(room)).toEqual([]);
    await room.drain();
    const [one] = await indexed(room);
    expect(one).toMatchObject({
      marks: "all file",
      subject: "Invoice of March",
      instruction: "Sum up",
      result: "All resulted well.",
    });
    expect(one?.sender).toContain("ada@example.com");
    expect(one?.recipient).toContain(room.inbox.address);
    expect(one?.material).toContain("quotedword");
    expect(one?.files).toBe("plan.txt\nfilewords and more");
    expect(await room.app.db.selectFrom("unindexed_messages").selectAll().execute()).toEqual([]);
    await isSound(room);
  });

  test("is indexed with the material and the files of a call", async () => {
    await using t = await testApp({ llm: { kind: "demo" } });
    const ada = await t.as("ada@example.com");
    await ada.post("/inboxes", {});
    const data = Buffer.from("inthefile").toString("base64");
    const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
    await ada.post("/v1/messages", { instruction: "Read this #Q3", content: "givenwords", attachments });
    const [one] = await indexed(t);
    expect(one).toMatchObject({ instruction: "Read this #Q3", material: "givenwords" });
    expect(one?.files).toContain("inthefile");
    expect(one?.tags).toBe(Buffer.from("q3").toString("hex"));
  });

  test("has at most 64 KB indexed, and its own words before its material", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const long = Array.from({ length: 40_000 }, (_, at) => `word${at % 100}`).join(" ");
    const [row] = await storeMessages(t, ada.user, [{ subject: long, instruction: long, result: long }]);
    await t.app.db
      .insertInto("message_contents")
      .values({ message_id: row?.id ?? "", content: long, purged_at: null })
      .execute();
    const [one] = await indexed(t);
    const { marks: _, message_id: __, ...texts } = one ?? { marks: "", message_id: "" };
    expect(Object.values(texts).join("").length).toBeLessThanOrEqual(65_536);
    expect(texts).toMatchObject({
      instruction: long.slice(0, 24_576),
      material: expect.stringMatching(/^word/),
    });
  });

  test("has a word that stands again and again indexed so often that it is found, and what stands behind it", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const repeated = `begin ${"again ".repeat(4_000)}end`;
    await storeMessages(t, ada.user, [{ subject: "one", instruction: repeated, result: "again and again" }]);
    const [one] = await indexed(t);
    expect(one?.instruction.match(/again/g)).toHaveLength(400);
    expect(one?.instruction).toEndWith("again end");
    for (const q of ["again", "begin", "end", '"begin again again"', "result"]) {
      const found = (await ada.get(`/messages?q=${q}`)).body.items.length;
      expect([q, found]).toEqual([q, q === "result" ? 0 : 1]);
    }
  });

  test("is indexed anew when its tags change, and only once however often it waits", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const [row] = await storeMessages(t, ada.user, [{ subject: "one" }]);
    expect(await indexed(t)).toHaveLength(1);
    await ada.patch(`/messages/${row?.id}`, { tags: ["paid"] });
    await ada.patch(`/messages/${row?.id}`, { tags: ["paid", "q3"] });
    const [one, ...others] = await indexed(t);
    expect(others).toEqual([]);
    expect(one?.tags).toBe(["paid", "q3"].map((tag) => Buffer.from(tag).toString("hex")).join(" "));
    await isSound(t);
  });
});

describe("nothing is indexed", () => {
  test("of a private run, whatever came of it", async () => {
    await using room = await mailroom({ model: { reply: () => "secretresult" } });
    await withVocabulary(room);
    await room.send({ text: "Sum secretwords up --private", subject: "secretsubject" });
    await room.drain();
    expect((await room.newest()).state).toBe("done");
    expect(await indexed(room)).toEqual([]);
    await storeMessages(room, room.owner.user, [
      { state: "failed", subject: "secretsubject", command: '{"options":{"private":true}}' },
      { state: "failed", subject: "secretsubject", command: '{"options":{"private":"yes"}}' },
      { state: "limited", subject: "secretsubject", command: null, instruction: "Sum up --private" },
    ]);
    expect(await indexed(room)).toEqual([]);
    expect(await has(room, "secretsubject")).toBe(false);
  });

  test("of a private mail that ended before it was understood, nor is it found before it is looked at", async () => {
    await using room = await mailroom();
    await withVocabulary(room);
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { paused: "keep" });
    const found = async (q: string) => (await room.owner.get(`/messages?q=${q}`)).body.items.length;
    for (const [subject, text] of [
      ["secretsubject", "Sum secretwords up.\n\n--private"],
      ["secretsubject", "—private Sum secretwords up."],
      ["Plainsubject", "Sum plainwords up."],
    ] as const) {
      await room.send({ subject, text });
      await room.drain();
      expect((await room.owner.post(`/messages/${(await room.newest()).id}/cancel`)).status).toBe(200);
      expect(await room.newest()).toMatchObject({ state: "failed", command: null });
    }
    expect(await found("secretsubject")).toBe(0);
    expect(await indexed(room)).toMatchObject([{ subject: "Plainsubject" }]);
    for (const word of ["secretsubject", "secretwords"]) {
      expect(await has(room, word)).toBe(false);
      expect(await found(word)).toBe(0);
    }
    for (const word of ["plainsubject", "plainwords"]) expect(await found(word)).toBe(1);
  });

  test("of what a rule leaves out, what is worked on, and what was deleted", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    await storeMessages(t, ada.user, [
      { state: "skipped", reason: "rule", subject: "left out" },
      { state: "received", subject: "under way" },
      { subject: "deleted", deleted_at: 1 },
    ]);
    expect(await indexed(t)).toEqual([]);
  });
});

describe("what is taken away goes from the index in the same transaction:", () => {
  test("a message, of which no byte is left in the file", async () => {
    await using folder = await databaseFolder();
    await using t = await testApp({ database: { url: folder.url } });
    await withVocabulary(t);
    const ada = await t.as("ada@example.com");
    const rows = await storeMessages(
      t,
      ada.user,
      Array.from({ length: 30 }, (_, at) => ({ subject: `markedword${at} ${"hay ".repeat(at)}` })),
    );
    await indexAll(t.app);
    expect(await has(t, "markedword17")).toBe(true);
    await t.app.upkeep.emptyLog();
    expect(await everyByte(t, folder)).toContain("markedword17");
    await ada.delete(`/messages/${rows[17]?.id}`);
    t.clock.advance("46s");
    await t.drain();
    expect(await has(t, "markedword17")).toBe(false);
    expect(await indexed(t)).toHaveLength(29);
    await t.app.upkeep.emptyLog();
    expect(await everyByte(t, folder)).not.toContain("markedword17");
    expect(await everyByte(t, folder)).toContain("markedword16");
    await isSound(t);
  });

  test("a whole account, with the slots of its texts", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    await storeMessages(t, ada.user, [{ subject: "one" }, { subject: "two" }]);
    await indexAll(t.app);
    await t.app.db.deleteFrom("messages").where("user_id", "=", ada.user.id).execute();
    for (const table of ["indexed_messages", "text_slots", "unindexed_messages"] as const)
      expect([table, await t.app.db.selectFrom(table).selectAll().execute()]).toEqual([table, []]);
    await isSound(t);
  });

  test("the words of a mail and of its files as their ages come, and the others stay", async () => {
    await using room = await mailroom({
      model: { reply: () => "Done." },
      config: { retention: { raw_days: 3, attachment_days: 6, content_days: 9 } },
    });
    await withVocabulary(room);
    await room.send(MAIL);
    await room.drain();
    await indexAll(room.app);
    await pass(room, 4);
    await purge(room);
    expect([await has(room, "quotedword"), await has(room, "march")]).toEqual([false, false]);
    expect(await indexed(room)).toMatchObject([{ subject: "Invoice of March", material: "" }]);
    expect(await has(room, "filewords")).toBe(true);
    await pass(room, 3);
    await purge(room);
    expect(await has(room, "filewords")).toBe(false);
    expect(await indexed(room)).toMatchObject([{ files: "plan.txt" }]);
    await isSound(room);
  });

  test("what was read just before, and not stored yet", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const [row] = await storeMessages(t, ada.user, [{ subject: "one" }]);
    const id = row?.id ?? "";
    await t.app.db
      .insertInto("message_contents")
      .values({ message_id: id, content: "purgedwords", purged_at: null })
      .execute();
    const { write } = t.app;
    let between = false;
    Object.assign(t.app, {
      write: async (...[operation, options]: Parameters<typeof write>) => {
        if (!between) {
          between = true;
          await t.app.db
            .updateTable("message_contents")
            .set({ content: null, purged_at: 1 })
            .where("message_id", "=", id)
            .execute();
        }
        return write(operation, options);
      },
    });
    expect(await indexed(t)).toMatchObject([{ subject: "one", material: "" }]);
    await isSound(t);
  });
});

test("places follow the order of ids, and two messages never have the same", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const ids = Array.from({ length: 3_000 }, () => t.app.newId());
  const places = ids.map(placeOf);
  expect(places).toEqual(places.toSorted((one, other) => one - other));
  expect(new Set(places).size).toBe(ids.length);
  expect(places.every(Number.isSafeInteger)).toBe(true);
  const [id = ""] = ids;
  const twin = (end: string) => ({ id: `${id.slice(0, -1)}${end}` });
  await storeMessages(t, ada.user, [twin("0"), twin("1"), twin("2")]);
  expect(await indexed(t)).toHaveLength(3);
});

test("accounts take turns, and the newest of each is indexed first", async () => {
  await using t = await testApp();
  const callers = [await t.as("ada@example.com"), await t.as("bob@example.com")];
  for (const { user } of callers)
    await storeMessages(
      t,
      user,
      Array.from({ length: 50 }, (_, at) => ({ subject: `number${at}` })),
    );
  const { indexSome } = await import("../../src/resources/messages/search/keep-indexed.ts");
  for (const _ of callers) await indexSome(t.app);
  const found = await t.app.db.selectFrom("text_slots").selectAll().execute();
  expect(found.map(({ messages }) => messages)).toEqual([20, 20]);
  const rows = await t.app.db.selectFrom("indexed_messages").select("subject").execute();
  expect(
    rows
      .map(({ subject }) => plainText(subject))
      .toSorted()
      .slice(0, 2),
  ).toEqual(["number30", "number30"]);
  await indexAll(t.app);
  await isSound(t);
});

describe("an index of words that is damaged", () => {
  const DAMAGES = {
    "has lost pages": "delete from message_texts_data where id > 1000",
    "has pages of nonsense":
      "update message_texts_data set block = randomblob(length(block)) where id > 1000",
    "has lost its structure": "delete from message_texts_data where id = 10",
  };
  test.each(Object.entries(DAMAGES))("that %s is made anew, and nothing else stops", async (_, damage) => {
    await using folder = await databaseFolder();
    await using t = await testApp({ database: { url: folder.url } });
    const ada = await t.as("ada@example.com");
    const [first] = await storeMessages(t, ada.user, [{ subject: "one" }, { subject: "two words" }]);
    await indexAll(t.app);
    const other = new Sqlite(join(folder.dir, "mailwright.db")).unsafeMode();
    other.exec(damage);
    other.close();
    expect((await ada.delete(`/messages/${first?.id}`)).status).toBe(204);
    // What was under way when it was found is taken up again a minute later.
    for (const wait of ["46s", "61s"]) {
      t.clock.advance(wait);
      await t.drain();
    }
    expect((await t.app.db.selectFrom("messages").select("subject").execute()).length).toBe(1);
    expect(["mended", "sound"]).toContain(await t.app.upkeep.lookThrough());
    expect(await indexed(t)).toMatchObject([{ subject: "two words" }]);
    await isSound(t);
    expect((await ada.post("/inboxes", {})).status).toBe(201);
  });
});

test("what has very many different words is indexed up to so many, so that it can be forgotten at once", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const many = Array.from({ length: 4_000 }, (_, at) => `w${at}`).join(" ");
  const [row] = await storeMessages(t, ada.user, [{ subject: "one", instruction: many, result: "last" }]);
  const [one] = await indexed(t);
  expect(one?.instruction.split(" ").length).toBeGreaterThan(2_400);
  expect(one?.instruction.split(" ").length).toBeLessThanOrEqual(2_501);
  expect(one?.result).toBe("");
  await t.app.db
    .deleteFrom("messages")
    .where("id", "=", row?.id ?? "")
    .execute();
  await isSound(t);
});
