import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { create, list } from "../support/tool-room.ts";
import {
  answer,
  ask,
  askOnce,
  type ApprovalRoom,
  approvalRoom,
  lastMail,
  letters,
  newest,
  read,
} from "./room.ts";

let room: ApprovalRoom;
beforeAll(async () => {
  room = await approvalRoom();
});
afterAll(() => room[Symbol.asyncDispose]());

describe("a call that the boundary blocks", () => {
  test("is asked about in a mail of its own, and made once after a yes, with its outcome in the thread", async () => {
    const { letter, approval } = await askOnce(room, { title: "Lunch", day: "Monday" });
    expect(room.tools.calls).toEqual([]);
    const message = await room.newest();
    expect(message).toMatchObject({ state: "done" });
    expect(message.result).toContain(
      "Not done yet, as it waits for your yes: `create_event` of `@calendar`.",
    );
    expect(letter).toMatchObject({
      subject: "Waits for your yes: create_event of @calendar",
      to: "ada@example.com",
    });
    expect(letter.lines).toContain("    title: Lunch\n    day: Monday\n");
    expect(letter.text).toContain("May this be done?");
    expect(letter.text).not.toContain("It waits.");
    expect(approval).toMatchObject({
      status: "pending",
      cause: "boundary",
      read_others: true,
      message_id: message.id,
    });
    expect(await answer(room, letter, "Yes!")).toStartWith("250");
    expect(room.tools.calls).toEqual([{ name: "create_event", args: { title: "Lunch", day: "Monday" } }]);
    const outcome = await lastMail(room);
    expect(outcome.text).toContain('Done, once, as you allowed: "create_event of @calendar". It answered:');
    expect(outcome.text).toContain("created 7");
    expect(await room.newest()).toMatchObject({
      state: "done",
      conversation_id: message.conversation_id,
      approval_id: approval.id,
      credits_charged: 1,
    });
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "done", outcome: "created 7" });
    await answer(room, letter, "Yes");
    expect(room.tools.calls).toHaveLength(1);
    expect((await lastMail(room)).text).toContain(
      "A consent is good for one call. If you still want it done",
    );
    expect(await room.newest()).toMatchObject({ credits_charged: 0 });
  });

  test("is never made after a no", async () => {
    const { letter, approval } = await askOnce(room);
    await answer(room, letter, "Nein.");
    expect((await lastMail(room)).text).toContain("is not called, and never will be for this request");
    await answer(room, letter, "yes");
    expect((await lastMail(room)).text).toContain("It was refused on");
    expect(room.tools.calls).toEqual([]);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "refused" });
  });

  test("can be allowed for seven days", async () => {
    const { letter, approval } = await askOnce(room);
    room.clock.advance("7d");
    await answer(room, letter, "yes");
    expect(room.tools.calls).toEqual([]);
    expect((await lastMail(room)).text).toContain("It could be allowed until");
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "expired" });
  });

  test("has a letter with a subject and a thread of its own, so that each of several short answers is heard", async () => {
    const titles = ["One", "Two", "Three", "Four", "Five"];
    const wanted = titles.map((title) => create({ title }));
    const asked = await ask(room, wanted);
    expect(asked.map(({ subject }) => subject).toSorted()).toEqual(
      titles.map((_, at) => `Waits for your yes: create_event of @calendar (${at + 1} of 5)`),
    );
    const raws = (await room.outgoing()).map(({ raw }) => Buffer.from(raw ?? "").toString());
    for (const { id } of asked)
      expect(raws.find((raw) => raw.includes(`Message-ID: ${id}`))).not.toMatch(
        /^(?:In-Reply-To|References):/m,
      );
    for (const letter of asked) await answer(room, letter, "yes");
    expect(room.tools.calls.map(({ args }) => args["title"]).toSorted()).toEqual(titles.toSorted());
  });

  test("says no word of the model's in its letter, and only reading ones are not asked about", async () => {
    room.rounds.push([list("Monday")]);
    expect(await ask(room, [create(), create()])).toHaveLength(1);
    expect((await newest(room.owner)).arguments).toEqual({ title: "Lunch" });
    expect(await letters(room)).not.toHaveLength(0);
  });
});

test.each([
  "ja",
  "Oui",
  "SÍ.",
  "si",
  "да!",
  " yes ",
  '"yes"',
  "はい。",
  "Yes\n\nKind regards\nAda Smith\nhttps://www.example.com/contact",
  "Yes\n\nBest\nAda",
])("%p says yes", async (words) => {
  const { letter } = await askOnce(room);
  await answer(room, letter, words);
  expect(room.tools.calls).toHaveLength(1);
});

test("a tool server with the name of an integration is called by its whole name", async () => {
  await using notes = await approvalRoom({ label: "Notes" });
  const [letter] = await ask(notes, [{ ...create(), name: "notes__create_event" }]);
  expect(letter?.subject).toBe("Waits for your yes: create_event of @mcp:notes");
});

test("thanks in Danish, a yes in Polish, say none", async () => {
  const { letter, approval } = await askOnce(room);
  await answer(room, letter, "Tak!\n\nJeg ser på det i morgen.");
  expect(room.tools.calls).toEqual([]);
  expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending" });
});

describe("where a tool has written something of late that the owner has not read", () => {
  let room: ApprovalRoom;
  beforeAll(async () => {
    room = await approvalRoom();
  });
  beforeEach(async () => {
    await ask(room, [create({ title: "x", tags: ["yes", "no"] })], {
      text: "@calendar Plan it.\n\nOn Mon, Eve <eve@example.net> wrote:\n> Make an event.",
      headers: { "In-Reply-To": "<x@example.org>" },
    });
    expect(room.tools.calls).toHaveLength(1);
  });
  afterAll(() => room[Symbol.asyncDispose]());

  test("the letter asks for its number with the yes, and no other counts", async () => {
    const { letter, approval } = await askOnce(room);
    const [, number = ""] = /answer this mail with "yes (\d{6})" alone/.exec(letter.text) ?? [];
    const wrong = number === "111111" ? "222222" : "111111";
    await answer(room, letter, `yes ${wrong}`);
    expect((await lastMail(room)).text).toContain(`${wrong} is not the number of this request`);
    await answer(room, letter, "yes");
    expect((await lastMail(room)).text).toContain(`To allow it, answer this mail with "yes ${number}"`);
    expect(room.tools.calls).toEqual([]);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending" });
    expect(await room.newest()).toMatchObject({ credits_charged: 0, model: null });
    await answer(room, await lastMail(room), `Yes, ${number.slice(0, 3)} ${number.slice(3)}.`);
    expect(room.tools.calls).toHaveLength(1);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "done" });
  });

  test("a no needs none", async () => {
    const { letter, approval } = await askOnce(room);
    await answer(room, letter, "no");
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "refused" });
  });

  test("after thirty days without any a yes is enough again", async () => {
    room.clock.advance("31d");
    const { letter } = await askOnce(room);
    expect(letter.text).toContain("answer this mail with yes alone");
    await answer(room, letter, "yes");
    expect(room.tools.calls).toHaveLength(1);
    // What she has read and allowed herself, she may well have meant.
    const next = await askOnce(room, { title: "Party", attending: "yes" });
    await answer(room, next.letter, "yes");
    const last = await askOnce(room);
    await answer(room, last.letter, "yes");
    expect(room.tools.calls).toHaveLength(1);
  });
});

test("a yes of Outlook, above a signature with a link, says yes, and a no says no", async () => {
  const html = (word: string) =>
    `<div class="WordSection1"><p class="MsoNormal">${word}</p><p class="MsoNormal">&nbsp;</p><p class="MsoNormal">Ada Smith</p><p class="MsoNormal">Example Ltd | <a href="https://www.example.com/contact">www.example.com/contact</a></p></div>`;
  const yes = await askOnce(room);
  await answer(room, yes.letter, "", { text: "", html: html("Yes") });
  expect(room.tools.calls).toHaveLength(1);
  const no = await askOnce(room);
  await answer(room, no.letter, "", { text: "", html: html("No") });
  expect(await read(room.owner, no.approval.id)).toMatchObject({ status: "refused" });
});

test.each(["yes please", "Yes, but at 11", "yes?", "yes 12345", "y", "ok", "> yes", "I do not know.\nyes"])(
  "%p is an ordinary mail",
  async (words) => {
    const { letter, approval } = await askOnce(room);
    await answer(room, letter, words);
    expect(room.tools.calls).toEqual([]);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending" });
    expect(await room.newest()).toMatchObject({ model: "stand-in" });
    expect((await lastMail(room)).text).toContain("create_event of @calendar still waits");
  },
);
