import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { createRateLimiter } from "../../src/lib/rate-limit.ts";

function limiterAt(start = 1_700_000_000_000) {
  const clock = { ms: start };
  return { clock, limiter: createRateLimiter(() => clock.ms) };
}

const PER_MINUTE = { limit: 60, window_seconds: 60 };

test("lets the whole limit through at once and refuses the next", () => {
  const { limiter } = limiterAt();
  for (let taken = 1; taken <= 60; taken++) {
    expect(limiter.take("a", PER_MINUTE)).toEqual({
      ok: true,
      limit: 60,
      remaining: 60 - taken,
      reset_seconds: taken,
      retry_after_seconds: 0,
    });
  }
  expect(limiter.take("a", PER_MINUTE)).toEqual({
    ok: false,
    limit: 60,
    remaining: 0,
    reset_seconds: 60,
    retry_after_seconds: 1,
  });
});

test("a caller that waits as long as it was told gets through", () => {
  const { limiter, clock } = limiterAt();
  const rule = { limit: 3, window_seconds: 100 };
  for (let taken = 0; taken < 3; taken++) {
    expect(limiter.take("a", rule).ok).toBe(true);
  }
  const refused = limiter.take("a", rule);
  expect(refused.retry_after_seconds).toBe(34);
  clock.ms += 33_000;
  expect(limiter.take("a", rule).ok).toBe(false);
  clock.ms += 1_000;
  expect(limiter.take("a", rule).ok).toBe(true);
  expect(limiter.take("a", rule).ok).toBe(false);
});

test("waiting as long as one is told is always enough, at any fraction of a second, and a second less never is", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 3_600 }),
      fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 100 }),
      (limit, window_seconds, pauses) => {
        const { limiter, clock } = limiterAt();
        const rule = { limit, window_seconds };
        for (const pause of pauses) {
          clock.ms += pause;
          const { ok, retry_after_seconds } = limiter.take("a", rule);
          if (ok) continue;
          clock.ms += (retry_after_seconds - 1) * 1_000;
          if (retry_after_seconds > 1) expect(limiter.peek("a", rule).ok).toBe(false);
          clock.ms += 1_000;
          expect(limiter.take("a", rule).ok).toBe(true);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test("a refused request costs nothing, however often it is repeated", () => {
  const { limiter, clock } = limiterAt();
  const rule = { limit: 1, window_seconds: 60 };
  limiter.take("a", rule);
  for (let index = 0; index < 100; index++) {
    clock.ms += 500;
    expect(limiter.take("a", rule).ok).toBe(false);
  }
  clock.ms += 10_000;
  expect(limiter.take("a", rule).ok).toBe(true);
});

test("keys do not share a bucket, and a forgotten key starts full", () => {
  const { limiter } = limiterAt();
  const rule = { limit: 1, window_seconds: 60 };
  expect(limiter.take("a", rule).ok).toBe(true);
  expect(limiter.take("b", rule).ok).toBe(true);
  expect(limiter.take("a", rule).ok).toBe(false);
  limiter.forget("a");
  expect(limiter.take("a", rule).ok).toBe(true);
  expect(limiter.take("b", rule).ok).toBe(false);
});

test("a limit of 0 means none, and holds no memory", () => {
  const { limiter } = limiterAt();
  for (let index = 0; index < 1_000; index++) {
    expect(limiter.take(`key ${index}`, { limit: 0, window_seconds: 60 }).ok).toBe(true);
  }
  expect(limiter.size).toBe(0);
});

test("a clock that goes backwards neither refuses for ever nor frees a full bucket", () => {
  const { limiter, clock } = limiterAt();
  const rule = { limit: 2, window_seconds: 10 };
  limiter.take("a", rule);
  limiter.take("a", rule);
  clock.ms -= 3_600_000;
  const refused = limiter.take("a", rule);
  expect(refused.ok).toBe(false);
  expect(refused.retry_after_seconds).toBeLessThanOrEqual(10);
  clock.ms += 10_000;
  expect(limiter.take("a", rule).ok).toBe(true);
});

test("never lets more through than the limit plus what time has refilled", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 3_600 }),
      fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 200 }),
      (limit, window_seconds, pauses) => {
        const { limiter, clock } = limiterAt();
        const start = clock.ms;
        let passed = 0;
        for (const pause of pauses) {
          clock.ms += pause;
          const verdict = limiter.take("a", { limit, window_seconds });
          passed += verdict.ok ? 1 : 0;
          expect(verdict.remaining).toBeGreaterThanOrEqual(0);
          expect(verdict.remaining).toBeLessThan(limit);
          expect(verdict.ok).toBe(verdict.retry_after_seconds === 0);
        }
        const refilled = ((clock.ms - start) / 1000) * (limit / window_seconds);
        expect(passed).toBeLessThanOrEqual(limit + refilled + 0.01);
      },
    ),
    { numRuns: 200 },
  );
});

test("drops buckets that have filled up again", () => {
  const { limiter, clock } = limiterAt();
  for (let index = 0; index < 500; index++) {
    limiter.take(`short ${index}`, { limit: 5, window_seconds: 10 });
  }
  limiter.take("long", { limit: 1, window_seconds: 86_400 });
  expect(limiter.size).toBe(501);
  clock.ms += 61_000;
  expect(limiter.take("long", { limit: 1, window_seconds: 86_400 }).ok).toBe(false);
  expect(limiter.size).toBe(1);
});

test("holds at most 100,000 keys, and forgets none for others that were used less", () => {
  const { limiter, clock } = limiterAt();
  const hourly = { limit: 5, window_seconds: 3_600 };
  for (let turn = 0; turn < 5; turn += 1) limiter.take("code-hour:ada", hourly);
  limiter.take("code-hour:bob", hourly);
  const guesses = { limit: 30, window_seconds: 3_600 };
  for (let network = 0; network < 250_000; network += 1) {
    clock.ms += network % 100 === 0 ? 1 : 0;
    expect(limiter.take(`verify-ip:${network}`, guesses).ok).toBe(true);
  }
  expect(limiter.size).toBeLessThanOrEqual(100_000);
  expect(limiter.peek("code-hour:ada", hourly).ok).toBe(false);
  expect(limiter.peek("code-hour:bob", hourly).remaining).toBe(3);
});

test("a key that was just used is kept, however soon its bucket is full", () => {
  const { limiter } = limiterAt();
  for (let key = 0; key < 100_000; key += 1) limiter.take(`${key}`, { limit: 1, window_seconds: 3_600 });
  const rule = { limit: 1, window_seconds: 1 };
  expect(limiter.take("new", rule).ok).toBe(true);
  expect(limiter.take("new", rule).ok).toBe(false);
  expect(limiter.size).toBe(90_001);
});

test("peek says what take would, and takes nothing", () => {
  const { limiter } = limiterAt();
  const once = { limit: 1, window_seconds: 60 };
  expect(limiter.peek("a", once)).toEqual(limiter.peek("a", once));
  expect(limiter.peek("a", once)).toEqual(limiter.take("a", once));
  expect(limiter.peek("a", once)).toEqual(limiter.take("a", once));
  expect(limiter.peek("a", once).ok).toBe(false);
  expect(limiter.peek("a", { limit: 0, window_seconds: 60 }).ok).toBe(true);
});

test("lists what takes more than a minute to fill, and takes it back", () => {
  const { clock, limiter } = limiterAt();
  limiter.take("short", PER_MINUTE);
  limiter.take("long", { limit: 1, window_seconds: 3_600 });
  expect(limiter.lasting()).toEqual([["long", clock.ms + 3_600_000]]);
  const other = createRateLimiter(() => clock.ms);
  other.restore(limiter.lasting());
  expect(other.peek("long", { limit: 1, window_seconds: 3_600 }).ok).toBe(false);
});

test("a turn that is given back can be taken again, and no more than that", () => {
  const { limiter, clock } = limiterAt();
  const rule = { limit: 2, window_seconds: 60 };
  const taken = () => [1, 2, 3].map(() => limiter.take("a", rule).ok);
  expect(taken()).toEqual([true, true, false]);
  limiter.giveBack("a", rule);
  expect(taken()).toEqual([true, false, false]);
  clock.ms += 600_000;
  limiter.giveBack("a", rule);
  limiter.giveBack("never taken", rule);
  expect(taken()).toEqual([true, true, false]);
});
