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
  createThread<string, Said>(PATIENT, { askMs: 50, aloneMs: 1_500, ...limits });
const word = (input: string) => () => ({ input, transfer: [] });

function wordOf(outcome: { ok: boolean; output?: Said }): string | undefined {
  return outcome.output?.said;
}

test("has many inputs in hand at once and answers each with its own output, whichever is done first", async () => {
  await using thread = threadOf();
  const order: string[] = [];
  const words = ["300", "a", "1", "b"];
  const outcomes = await Promise.all(
    words.map((one) => thread.run(word(one)).finally(() => order.push(one))),
  );
  expect(outcomes.map(wordOf)).toEqual(words);
  expect(order.at(-1)).toBe("300");
  expect(new Set(outcomes.map((one) => one.ok && one.output.born)).size).toBe(1);
});

test("one input that holds the thread is given up, and the others in hand are answered all the same", async () => {
  await using thread = threadOf();
  const waiting = ["100000", "50", "c"].map((one) => thread.run(word(one)));
  const culprit = thread.run(word("hang"));
  expect(await culprit).toEqual({ ok: false, problem: "too_slow" });
  const [endless, ...others] = await Promise.all(waiting);
  expect(others.map((one) => wordOf(one ?? { ok: false }))).toEqual(["50", "c"]);
  // Alone it may take no longer than a suspect may.
  expect(endless).toEqual({ ok: false, problem: "too_slow" });
  expect(wordOf(await thread.run(word("later")))).toBe("later");
});

test("a thread that dies costs only the input that killed it", async () => {
  await using thread = threadOf();
  const [before, dead, after] = await Promise.all(["x", "exit", "y"].map((one) => thread.run(word(one))));
  expect([wordOf(before ?? { ok: false }), wordOf(after ?? { ok: false })]).toEqual(["x", "y"]);
  expect(dead).toEqual({ ok: false, problem: "crashed" });
});

test("what the work throws is thrown to whoever asked, and the thread goes on", async () => {
  await using thread = threadOf();
  const first = await thread.run(word("one"));
  expect(
    await thread.run(word("throw")).then(
      () => "",
      (error: unknown) => messageOf(error),
    ),
  ).toBe("thrown at work");
  const second = await thread.run(word("two"));
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
  await thread.run(pack);
  expect(packed).toBe(2);
});

test("a large input that is tried again alone may take longer than a small one", async () => {
  await using thread = threadOf({ aloneMs: 100 });
  const outcomeOf = async (bytes: number) => {
    const pack = () => ({ input: "800", transfer: [new ArrayBuffer(bytes)] });
    const [outcome] = await Promise.all([thread.run(pack), thread.run(word("exit"))]);
    return wordOf(outcome);
  };
  expect(await outcomeOf(16 * 1_048_576)).toBe("800");
  expect(await outcomeOf(1_024)).toBeUndefined();
});

test("an idle thread is ended, and another is started for later work", async () => {
  await using thread = threadOf({ idleMs: 5 });
  const first = await thread.run(word("one"));
  await Bun.sleep(60);
  const second = await thread.run(word("two"));
  expect(first.ok && second.ok && first.output.born !== second.output.born).toBe(true);
});

test("closing waits for the work under way and refuses what comes later", async () => {
  const thread = threadOf();
  const underWay = thread.run(word("100"));
  const closing = thread[Symbol.asyncDispose]();
  expect(await thread.run(word("late")).then(() => "", messageOf)).toBe("The thread is closed.");
  await closing;
  expect(wordOf(await underWay)).toBe("100");
});
