import { expect, test } from "bun:test";
import { messageOf } from "../../src/errors.ts";
import { createThread } from "../../src/lib/thread.ts";

const PATIENT = "../test/mail/fixtures/patient-worker.ts";

interface Said {
  said: string;
  born: string;
}

/** Silent for 400 ms is too long here, and a second and a half is enough for what is tried again alone. */
const threadOf = (limits = {}) =>
  createThread<string, Said>(PATIENT, { ask_ms: 50, alone_ms: 1_500, ...limits });
/** Where it matters that no thread is ended but by what holds it, however busy the machine is. */
const PATIENTLY = { ask_ms: 250 };
const word = (input: string) => () => ({ input, transfer: [] });
const bornOf = (outcome: { ok: boolean; output?: Said }): string | undefined => outcome.output?.born;

function wordOf(outcome: { ok: boolean; output?: Said }): string | undefined {
  return outcome.output?.said;
}

test("has many inputs in hand at once and answers each with its own output, whichever is done first", async () => {
  await using thread = threadOf();
  const order: string[] = [];
  const words = ["300", "a", "1", "b"];
  const outcomes = await Promise.all(
    words.map((one) => thread.run("ada", word(one)).finally(() => order.push(one))),
  );
  expect(outcomes.map(wordOf)).toEqual(words);
  expect(order.at(-1)).toBe("300");
  expect(new Set(outcomes.map((one) => one.ok && one.output.born)).size).toBe(1);
});

test("one input that holds the thread is given up, and the others in hand are answered before that", async () => {
  await using thread = threadOf(PATIENTLY);
  const order: string[] = [];
  const run = (who: string, input: string) =>
    thread.run(who, word(input)).finally(() => order.push(`${who} ${input}`));
  const others = [run("ada", "a"), run("bob", "50")];
  expect(await run("eve", "hang")).toEqual({ ok: false, problem: "too_slow" });
  const [ada, bob] = await Promise.all(others);
  expect(order).toEqual(["ada a", "bob 50", "eve hang"]);
  const later = await run("cid", "later");
  expect([ada, bob, later].map((one) => wordOf(one ?? { ok: false }))).toEqual(["a", "50", "later"]);
  // What was in hand beside it has gone on together, in the thread that is there for all again.
  expect(bornOf(bob ?? { ok: false })).toBe(bornOf(later));
});

test("inputs that come together hold the thread no longer than each of them does", async () => {
  await using thread = threadOf({ ask_ms: 125 });
  let packed = 0;
  const pack = () => {
    packed += 1;
    return { input: "busy", transfer: [] };
  };
  const outcomes = await Promise.all(Array.from({ length: 6 }, () => thread.run("ada", pack)));
  expect(outcomes.map(wordOf)).toEqual(Array.from({ length: 6 }, () => "busy"));
  expect(new Set(outcomes.map(bornOf)).size).toBe(1);
  expect(packed).toBe(6);
});

test("whoever held the thread waits behind themselves, and others have their turns there too", async () => {
  await using thread = threadOf({ alone_ms: 2_000 });
  const order: string[] = [];
  const run = (who: string, input: string) =>
    thread.run(who, word(input)).finally(() => order.push(`${who} ${input}`));
  const eve = [run("eve", "hang"), run("eve", "hang"), run("eve", "x")];
  const ada = await run("ada", "a");
  const mal = [run("mal", "hang"), run("mal", "y")];
  expect(wordOf(await run("bob", "b"))).toBe("b");
  await Promise.all([...eve, ...mal]);
  expect(order).toEqual(["ada a", "bob b", "eve hang", "mal hang", "eve hang", "mal y", "eve x"]);
  expect(bornOf(await run("ada", "later"))).not.toBe(bornOf(ada));
});

test("whoever went on after a wait, and held the thread then, is known for it", async () => {
  await using thread = threadOf(PATIENTLY);
  const eve = thread.run("eve", word("300 hang"));
  const [ada] = await Promise.all([thread.run("ada", word("600")), thread.run("bob", word("a"))]);
  // Neither of the others is worked on alone now.
  const [late_ada, late_bob] = await Promise.all([
    thread.run("ada", word("b")),
    thread.run("bob", word("c")),
  ]);
  expect(new Set([ada, late_ada, late_bob].map((one) => bornOf(one ?? { ok: false }))).size).toBe(1);
  expect(await eve).toEqual({ ok: false, problem: "too_slow" });
});

test("an input that went on unseen, and held thread after thread, is worked on alone in the end", async () => {
  await using thread = threadOf();
  const eve = thread.run("eve", word("300 unseen hang"));
  const others = Array.from({ length: 4 }, (_one, nth) => thread.run(`ada${nth}`, word("600")));
  expect(await eve).toEqual({ ok: false, problem: "too_slow" });
  expect((await Promise.all(others)).map(wordOf)).toEqual(["600", "600", "600", "600"]);
});

test("for two minutes whoever held a thread is worked on apart, and then among the others again", async () => {
  let now = 0;
  await using thread = threadOf({ ...PATIENTLY, nowMs: () => now });
  await Promise.all([thread.run("eve", word("hang")), thread.run("ada", word("a"))]);
  const born = async () =>
    (await Promise.all(["eve", "ada"].map((who) => thread.run(who, word("b"))))).map(bornOf);
  expect(new Set(await born()).size).toBe(2);
  now = 119_999;
  expect(new Set(await born()).size).toBe(2);
  now = 120_000;
  expect(new Set(await born()).size).toBe(1);
});

test("a thread that dies costs only the input that killed it", async () => {
  await using thread = threadOf();
  const [before, dead, after] = await Promise.all(
    ["x", "exit", "y"].map((one) => thread.run(one, word(one))),
  );
  expect([wordOf(before ?? { ok: false }), wordOf(after ?? { ok: false })]).toEqual(["x", "y"]);
  expect(dead).toEqual({ ok: false, problem: "crashed" });
});

test("what the work throws is thrown to whoever asked, and the thread goes on", async () => {
  await using thread = threadOf();
  const first = await thread.run("ada", word("one"));
  expect(
    await thread.run("ada", word("throw")).then(
      () => "",
      (error: unknown) => messageOf(error),
    ),
  ).toBe("thrown at work");
  const second = await thread.run("ada", word("two"));
  expect(second.ok && first.ok && second.output.born === first.output.born).toBe(true);
});

test("each attempt is packed anew, because what was transferred is lost", async () => {
  await using thread = threadOf();
  let packed = 0;
  const pack = () => {
    packed += 1;
    const bytes = new Uint8Array([packed]);
    return { input: "hang", transfer: [bytes.buffer] };
  };
  await thread.run("ada", pack);
  expect(packed).toBe(2);
});

test("a large input that is tried again alone may take longer than a small one", async () => {
  await using thread = threadOf({ alone_ms: 100 });
  const outcomeOf = async (bytes: number) => {
    const pack = () => ({ input: "800", transfer: [new ArrayBuffer(bytes)] });
    const [outcome] = await Promise.all([thread.run("ada", pack), thread.run("ada", word("exit"))]);
    return wordOf(outcome);
  };
  expect(await outcomeOf(16 * 1_048_576)).toBe("800");
  expect(await outcomeOf(1_024)).toBeUndefined();
});

test("an idle thread is ended, and another is started for later work", async () => {
  await using thread = threadOf({ idle_ms: 5 });
  const first = await thread.run("ada", word("one"));
  await Bun.sleep(60);
  const second = await thread.run("ada", word("two"));
  expect(first.ok && second.ok && first.output.born !== second.output.born).toBe(true);
});

test("closing waits for the work under way and refuses what comes later", async () => {
  const thread = threadOf();
  const underWay = thread.run("ada", word("100"));
  const closing = thread[Symbol.asyncDispose]();
  expect(await thread.run("ada", word("late")).then(() => "", messageOf)).toBe("The thread is closed.");
  await closing;
  expect(wordOf(await underWay)).toBe("100");
});
