import { allOf } from "./lists.ts";

export const MINUTE_SECONDS = 60;
export const HOUR_SECONDS = 60 * MINUTE_SECONDS;
export const DAY_SECONDS = 24 * HOUR_SECONDS;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const UNITS = [
  ["hour", HOUR_SECONDS],
  ["minute", MINUTE_SECONDS],
  ["second", 1],
] as const;

/** Returns the day of a moment (Unix seconds) in UTC: "2026-11-27". */
export function dayAt(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().slice(0, "YYYY-MM-DD".length);
}

/** Returns a span in its largest whole unit, such as "5 minutes" or "90 seconds". */
export function spanWords(seconds: number): string {
  const [name, unit] = UNITS.find(([, size]) => seconds >= size && seconds % size === 0) ?? ["second", 1];
  const count = seconds / unit;
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

/** Returns several spans as a sentence lists them: "1 minute, 5 minutes and 2 hours". */
export function spansInWords(spans: number[]): string {
  return allOf(spans.map(spanWords), "and");
}
