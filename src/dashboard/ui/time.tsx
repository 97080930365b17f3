import { useSyncExternalStore } from "react";

/** How often it is looked whether the words are still true. */
const TICK_MS = 10_000;
const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [3_600, "minute"],
  [86_400, "hour"],
  [30 * 86_400, "day"],
  [365 * 86_400, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];
const SECONDS = { second: 1, minute: 60, hour: 3_600, day: 86_400, month: 30 * 86_400, year: 365 * 86_400 };
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

/** A moment in unix seconds as people say it; the exact one shows on hover. */
export function Time({ at }: { at: number }) {
  const date = new Date(at * 1000);
  const words = useSyncExternalStore(everyTick, () => agoOf(at));
  return (
    <time dateTime={date.toISOString()} title={exact.format(date)} className="whitespace-nowrap">
      {words}
    </time>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "numeric",
  minute: "2-digit",
});

/** A moment in unix seconds by the clock of whoever reads it, with its day where that is not today. */
export function ClockTime({ at }: { at: number }) {
  const date = new Date(at * 1000);
  const words = useSyncExternalStore(everyTick, () => clockOf(date));
  return (
    <time dateTime={date.toISOString()} title={exact.format(date)} className="whitespace-nowrap">
      {words}
    </time>
  );
}

function clockOf(date: Date): string {
  return (date.toDateString() === new Date().toDateString() ? clock : day).format(date);
}

const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for all moments of the page. */
function everyTick(look: () => void): () => void {
  watchers.add(look);
  timer ??= setInterval(() => {
    for (const each of watchers) each();
  }, TICK_MS);
  return () => {
    watchers.delete(look);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function agoOf(at: number, now = Date.now() / 1000): string {
  const seconds = Math.round(at - now);
  if (Math.abs(seconds) < 10) return "just now";
  const unit = STEPS.find(([limit]) => Math.abs(seconds) < limit)?.[1] ?? "year";
  return relative.format(Math.round(seconds / SECONDS[unit as keyof typeof SECONDS]), unit);
}
