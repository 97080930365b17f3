import { expect, test } from "bun:test";
import { createIncoming } from "../../src/net/incoming.ts";
import { readCapped } from "../../src/net/responses.ts";

const SMALL = 262_144;
const LARGE = SMALL + 1;

/** What has been settled by the time that everything else has had its turn. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let is_settled = false;
  void promise.then(() => (is_settled = true));
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return is_settled;
}

test("an account has half of the large answers, the next begins where one ends, and small ones need nothing", async () => {
  const open = createIncoming(2);
  const [first, second, third, others] = [open("eve"), open("eve"), open("eve"), open("ada")];
  await first.holds(LARGE);
  await first.holds(8 * LARGE);
  const waiting = second.holds(LARGE);
  expect(await settled(waiting)).toBe(false);
  await third.holds(SMALL);
  await others.holds(LARGE);
  expect(await settled(waiting)).toBe(false);
  await first.holds(0);
  await waiting;
  // The next event of the same stream waits in its turn again.
  const again = first.holds(LARGE);
  expect(await settled(again)).toBe(false);
  await second.holds(SMALL);
  await again;
});

test("one that was given up while it waited takes nobody's room", async () => {
  const open = createIncoming(2);
  const [first, second, third] = [open("eve"), open("eve"), open("eve")];
  await first.holds(LARGE);
  void second.holds(LARGE);
  void second.holds(0);
  const waiting = third.holds(LARGE);
  expect(await settled(waiting)).toBe(false);
  await first.holds(0);
  await waiting;
});

test("one that takes too long over its room is ended, and the next has it", async () => {
  const open = createIncoming(2, 5);
  const [slow, next] = [open("eve"), open("eve")];
  const late = new Promise((resolve) => {
    slow.signal.addEventListener("abort", resolve);
  });
  await slow.holds(LARGE);
  await next.holds(LARGE);
  await late;
  expect(slow.signal.reason).toMatchObject({ name: "TimeoutError" });
});

test.each([
  ["whose length is known", { "content-length": String(LARGE) }],
  ["whose length is not", {}],
])("a large body %s is read when it may be held", async (_claim, headers) => {
  const open = createIncoming(2);
  const first = open("eve");
  await first.holds(LARGE);
  const body = new Response(new Blob([new Uint8Array(LARGE)]).stream(), { headers });
  const read = readCapped(body, 2 * LARGE, open("eve"));
  expect(await settled(read)).toBe(false);
  await first.holds(0);
  expect((await read).bytes).toHaveLength(LARGE);
});
