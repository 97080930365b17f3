import { describe, expect, test } from "bun:test";
import { freshId, mailroom } from "../support/mailroom.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { newestCode, openBrowser, subjectsTo } from "../api/browser.ts";
import { MB } from "../../src/lib/sizes.ts";

const EVE = "eve@example.net";

async function jobs({ app }: TestApp): Promise<string[]> {
  return (await app.db.selectFrom("jobs").select("kind").execute()).map(({ kind }) => kind);
}

/** What happens while commits are undone because the disk is full by then: all, or the one at this place alone. */
async function refused<T>({ app }: TestApp, act: () => Promise<T>, alone?: number): Promise<T> {
  const { write } = app;
  let commits = 0;
  app.write = (operation) =>
    write(async (tx) => {
      const value = await operation(tx);
      commits += 1;
      if (alone !== undefined && commits !== alone) return value;
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    });
  try {
    return await act();
  } finally {
    app.write = write;
  }
}

describe("what could not be written has used up nobody's turn:", () => {
  test.each([
    ["/auth/request-code", {}],
    ["/auth/register", { password: "a long enough one 77" }],
  ])("a code is on its way after %s was refused six times", async (path, body) => {
    await using t = await testApp();
    const email = "new@example.com";
    const ask = () => openBrowser(t).post(path, { email, ...body });
    for (let count = 0; count < 6; count += 1) {
      expect((await refused(t, ask)).status).toBe(503);
      expect(await jobs(t)).toEqual([]);
    }
    const asked = await ask();
    expect([asked.status, asked.body.retry_after]).toEqual([202, 60]);
    await t.drain();
    expect(await newestCode(t, email)).toMatch(/^\d{6}$/);
    // And one code is one turn, as ever.
    expect((await ask()).status).toBe(202);
    await t.drain();
    expect(await subjectsTo(t, email)).toHaveLength(1);
  });

  test("the owner is mailed about a new key after ten that were not made", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const make = () => ada.post("/auth/api-key", { name: "one more" });
    for (let count = 0; count < 10; count += 1) expect((await refused(t, make)).status).toBe(503);
    expect((await make()).status).toBe(200);
    expect(await subjectsTo(t, "ada@example.com")).toEqual(["A new API key for your Mailwright account"]);
  });

  test("two who ask at once, of whom the first is refused: the second has the code", async () => {
    await using t = await testApp();
    const email = "new@example.com";
    const ask = () => openBrowser(t).post("/auth/request-code", { email });
    const asked = await refused(t, () => Promise.all([ask(), ask()]), 1);
    expect(asked.map(({ status }) => status)).toEqual([503, 202]);
    expect(await jobs(t)).toEqual(["mail_code"]);
  });

  test("a mail that was put off by the disk is taken when it comes again", async () => {
    await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
    const mail = { from: EVE, text: "hello", ...freshId() };
    for (let count = 0; count < 3; count += 1)
      expect(await refused(room, () => room.send(mail))).toStartWith("4");
    expect(await room.send(mail)).toStartWith("250 ");
    expect(await room.send({ from: EVE, text: "another", ...freshId() })).toStartWith("451 4.7.1 ");
  });

  test("mail to the postmaster that was put off, by the disk or for another recipient, is taken when it comes again", async () => {
    await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
    const mail = { from: EVE, text: "it sends spam", rcpt: "postmaster@mw.test" };
    for (let count = 0; count < 21; count += 1)
      expect(await refused(room, () => room.send({ ...mail, ...freshId() }))).toStartWith("4");
    expect(await room.send({ from: EVE, text: "fills the inbox", ...freshId() })).toStartWith("250 ");
    const both = { ...mail, rcpt: ["postmaster@mw.test", room.inbox.address] };
    for (let count = 0; count < 21; count += 1)
      expect(await room.send({ ...both, mail_from: `eve${count}@example.net`, ...freshId() })).toStartWith(
        "4",
      );
    // So many of one domain are taken.
    for (let count = 0; count < 5; count += 1)
      expect(await room.send({ ...mail, ...freshId() })).toStartWith("250 ");
    expect(await room.send({ ...mail, ...freshId() })).toStartWith("451 4.7.1 The operator");
  });

  test("a row about a mail that was refused is written when it comes again", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.net"] } });
    const send = (count: number) => room.send({ from: EVE, text: `${count}`, ...freshId() });
    for (let count = 0; count < 201; count += 1) await refused(room, () => send(count));
    await send(201);
    expect(await room.activity()).toMatchObject([{ sender: EVE, mails: 1 }]);
  });

  test("the owner hears of a full account, and sees the mail in the activity", async () => {
    await using room = await mailroom({ config: { plans: { team: { storage_mb: 1 } } } });
    const text = "x".repeat(MB);
    const send = () => room.send({ from: EVE, text, ...freshId() });
    // That of the row in the activity, and that of the letter.
    for (const place of [2, 3]) expect(await refused(room, send, place)).toStartWith("451 4.3.0 ");
    expect(await send()).toStartWith("452 ");
    expect(await room.activity()).toMatchObject([{ reason: "storage_full" }]);
    await room.drain();
    expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(["notice"]);
  });
});
