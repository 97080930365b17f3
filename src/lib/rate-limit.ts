const MAX_KEYS = 100_000;
/** Keys dropped at once when there are too many, since it takes a look at all of them to choose. */
const DROPPED = 10_000;
const SWEEP_EVERY_MS = 60_000;
const LASTING_MS = 60_000;
const MAX_LASTING = 10_000;

/** `limit` requests per `window_seconds`; a limit of 0 means none. */
export interface RateRule {
  limit: number;
  window_seconds: number;
}

/**
 * The result of a `take`: `remaining` more could follow at once, and all of `limit` after `reset_seconds`. A refused
 * one may be repeated after `retry_after_seconds`.
 */
export interface RateVerdict {
  ok: boolean;
  limit: number;
  remaining: number;
  reset_seconds: number;
  retry_after_seconds: number;
}

export interface RateLimiter {
  take: (key: string, rule: RateRule) => RateVerdict;
  /** Undoes a successful `take` with the same rule. */
  giveBack: (key: string, rule: RateRule) => void;
  /** Returns what `take` would, without counting anything. */
  peek: (key: string, rule: RateRule) => RateVerdict;
  /** Resets a key, such as after a correct password. */
  forget: (key: string) => void;
  /** Resets all keys that contain `name`, such as a deleted id. */
  forgetNaming: (name: string) => void;
  /**
   * Returns the keys whose buckets take more than a minute to fill, with the time when they are full: the 10,000 that
   * take longest.
   */
  lasting: () => [key: string, full_at: number][];
  restore: (entries: [key: string, full_at: number][]) => void;
  readonly size: number;
}

/**
 * Creates token buckets by the generic cell rate algorithm (GCRA): one number per key, the time at which its bucket is
 * full. Kept in memory, 100,000 keys at most; beyond that those are dropped whose buckets are full soonest: whoever calls once from
 * each of many networks has nobody's limit forgotten that was used more. `now` is in milliseconds.
 */
export function createRateLimiter(now: () => number): RateLimiter {
  const fullAt = new Map<string, number>();
  let sweptAt = now();

  const take = (key: string, rule: RateRule): RateVerdict => {
    if (rule.limit <= 0) return UNLIMITED;
    const moment = now();
    if (moment - sweptAt >= SWEEP_EVERY_MS) {
      sweep(fullAt, moment);
      sweptAt = moment;
    }
    const before = clamp(fullAt.get(key) ?? moment, moment, moment + rule.window_seconds * 1000);
    const verdict = judge(before, moment, rule);
    const after = verdict.ok ? before + emissionInterval(rule) : before;
    fullAt.set(key, after);
    if (fullAt.size > MAX_KEYS) evict(fullAt, key);
    return verdict;
  };

  return {
    take,
    peek(key, rule) {
      if (rule.limit <= 0) return UNLIMITED;
      const moment = now();
      return judge(
        clamp(fullAt.get(key) ?? moment, moment, moment + rule.window_seconds * 1000),
        moment,
        rule,
      );
    },
    giveBack(key, rule) {
      const full = fullAt.get(key);
      if (full !== undefined && rule.limit > 0) fullAt.set(key, full - emissionInterval(rule));
    },
    lasting() {
      const horizon = now() + LASTING_MS;
      const entries = [...fullAt].filter(([, full]) => full > horizon);
      return entries.sort(([, a], [, b]) => b - a).slice(0, MAX_LASTING);
    },
    restore(entries) {
      for (const [key, full] of entries) fullAt.set(key, full);
    },
    forget: (key) => {
      fullAt.delete(key);
    },
    forgetNaming(name) {
      for (const key of fullAt.keys()) if (key.includes(name)) fullAt.delete(key);
    },
    get size() {
      return fullAt.size;
    },
  };
}

const UNLIMITED: RateVerdict = {
  ok: true,
  limit: 0,
  remaining: 0,
  reset_seconds: 0,
  retry_after_seconds: 0,
};

function judge(fullAt: number, moment: number, rule: RateRule): RateVerdict {
  const window = rule.window_seconds * 1000;
  const after = fullAt + emissionInterval(rule);
  const wait = after - window - moment;
  // Sums of fractions of a millisecond drift, so a wait below a microsecond counts as none.
  const ok = wait <= 0.001;
  const settled = ok ? after : fullAt;
  return {
    ok,
    limit: rule.limit,
    remaining: ok
      ? Math.max(0, Math.floor((window - (settled - moment)) / emissionInterval(rule) + 0.001))
      : 0,
    reset_seconds: Math.ceil((settled - moment) / 1000),
    retry_after_seconds: ok ? 0 : Math.max(1, Math.ceil(wait / 1000)),
  };
}

/** Limits a bucket's time to one window from now: only a clock that was set back leads beyond. */
function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

function emissionInterval(rule: RateRule): number {
  return (rule.window_seconds * 1000) / rule.limit;
}

function sweep(fullAt: Map<string, number>, moment: number): void {
  for (const [key, full] of fullAt) {
    if (full <= moment) {
      fullAt.delete(key);
    }
  }
}

/** Drops the keys whose buckets are full soonest, but for one. */
function evict(fullAt: Map<string, number>, kept: string): void {
  const moments = Float64Array.from(fullAt.values()).sort();
  const last = moments[DROPPED - 1] ?? 0;
  let left = DROPPED;
  for (const [key, full] of fullAt) {
    if (left === 0) return;
    if (full > last || key === kept) continue;
    fullAt.delete(key);
    left -= 1;
  }
}
