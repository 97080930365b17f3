/** What a figure is to reach, and what no change may undercut; "" where neither is set. */
export interface Bounds {
  goal: string;
  floor: string;
}

const bounds = (goal: string, floor = ""): Bounds => ({ goal, floor });

/** Every figure that a bench prints with a bound, under its name. Ratios are against the peer, or the state, of the same run. */
export const FIGURES: Record<string, Bounds> = {
  "accept, 1 KB x 50 connections": bounds(">= 2.3", ">= 1.5"),
  "accept, 1 KB x 10": bounds(">= 1.9", ">= 1.3"),
  "accept, 1 KB x 1": bounds(">= 1.0", ">= 0.85"),
  "accept, 50 KB x 50": bounds(">= 2", ">= 1.4"),
  "accept, 50 KB x 10": bounds(">= 1.6", ">= 1.3"),
  "accept, 1 MB x 10": bounds(">= 1.1", ">= 0.9"),
  "CPU per accepted mail, 1 KB x 50": bounds("<= 0.35", "<= 0.42"),
  "p50, 1 KB at 200/s": bounds("<= 1.4", "<= 1.9"),
  "p99, 1 KB at 200/s": bounds("<= 1.0", "<= 1.5"),
  "p99, 50 KB at 100/s": bounds("<= 1.2", "<= 2"),
  "p99 of a second client, flooded against idle": bounds("<= 3", "<= 5.5"),
  "accept rate, workers saturated against still": bounds(">= 0.9", ">= 0.7"),
  "requests, 32 at once": bounds(">= 2.2", ">= 1.4"),
  "p99, 32 at once": bounds("<= 0.45", "<= 0.55"),
  "added p50, one at a time": bounds("<= 1.2", "<= 2.0"),
  "accepted to reply handed over, p50": bounds("<= 10", "<= 25"),
  "accepted to reply handed over, p99": bounds("<= 40", "<= 100"),
  "queued 20 KB mails against the sum of the parts": bounds(">= 1.0", ">= 0.7"),
  "deliveries, 20 endpoints": bounds(">= 0.6", ">= 0.42"),
  "event to first attempt, 200/s, p50": bounds("<= 5", "<= 20"),
  "event to first attempt, 200/s, p99": bounds("<= 20", "<= 100"),
  "messages, first page": bounds("<= 1.2", "<= 1.5"),
  "messages, page 1000": bounds("<= 1.2", "<= 1.5"),
  "messages, status=failed": bounds("<= 1.2", "<= 1.5"),
  "messages, status=rejected": bounds("<= 1.2", "<= 1.5"),
  "messages, status=done&source=api": bounds("<= 1.2", "<= 1.5"),
  "conversations, first page": bounds("<= 1.2", "<= 1.5"),
  "conversations, page 1000": bounds("<= 1.2", "<= 1.5"),
  "search, a rare word, p95": bounds("<= 50", "<= 80"),
  "search, a very common word, p95": bounds("<= 50", "<= 80"),
  "search, a word that only another account has, p95": bounds("<= 50", "<= 80"),
  "search, the beginning of words, p95": bounds("<= 50", "<= 80"),
  "second start to ready, binary": bounds("<= 200", "<= 250"),
  "second start to ready, source": bounds("<= 300", "<= 500"),
  "idle memory, binary": bounds("<= 90", "<= 100"),
  "event-loop delay, reading, p99": bounds("<= 10", "<= 50"),
  "first load of the sign-in, typed into after": bounds("<= 1000"),
  "first load of the sign-in, size": bounds("<= 200"),
  "delay of the event loop, p99 over all shapes": bounds("<= 50", "<= 50"),
  "delay of the event loop, p99 of the worst door": bounds("<= 50", "<= 50"),
  "/livez, slowest": bounds("<= 500", "<= 500"),
  "mails to one domain": bounds(">= 1"),
  "p50 from submission to arrival, one at a time": bounds("<= 1"),
};

/** Whether a figure keeps a bound such as "<= 1.4". */
export function keeps(value: number, bound: string): boolean {
  const [sign, number] = bound.split(" ");
  return sign === ">=" ? value >= Number(number) : value <= Number(number);
}
