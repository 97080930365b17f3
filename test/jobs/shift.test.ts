import { expect, spyOn, test } from "bun:test";
import { endlessShift, takeTurns } from "../../src/jobs/shift.ts";
import { testApp } from "../support/app.ts";

const TURNS = 10;
const LONG_MS = 100;

/** Keeps the only thread of the server busy. */
function work(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** How long ten turns take, each of which takes longer than it may. */
async function timeOfTurns(app: Parameters<typeof endlessShift>[0]): Promise<number> {
  let turns = 0;
  const began = performance.now();
  await takeTurns(endlessShift(app), async () => {
    work(LONG_MS);
    turns += 1;
    return turns < TURNS;
  });
  return performance.now() - began;
}

test.each([
  ["does nothing else", "half", 0, 1.8],
  ["does something else", "most", 1e9, 3],
])(
  "while the server %s, a long deletion whose steps take long leaves others at least %s of the time",
  async (_what, _part, user, times) => {
    using _used = spyOn(process, "cpuUsage").mockReturnValue({ user, system: 0 });
    await using t = await testApp();
    expect(await timeOfTurns(t.app)).toBeGreaterThan(TURNS * LONG_MS * times);
  },
);

test("a long deletion that rests ends at once when the server stops", async () => {
  await using t = await testApp();
  const stop = new AbortController();
  const shift = { ...endlessShift(t.app), signal: stop.signal };
  let worked = 0;
  const turns = takeTurns(shift, async () => {
    setTimeout(() => stop.abort(new Error("The server stops")), 10);
    work(1_500);
    worked = performance.now();
    return true;
  });
  await expect(turns).rejects.toThrow("The server stops");
  expect(performance.now() - worked).toBeLessThan(1_400);
});
