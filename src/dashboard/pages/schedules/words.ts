import type { Schedule } from "../../api/shapes.ts";

/** When a schedule runs, as a clause that begins with a capital letter. */
export function whenWords({ in_words, at, timezone }: Schedule): string {
  if (in_words !== null) return `${in_words.charAt(0).toUpperCase()}${in_words.slice(1)} (${timezone})`;
  return at === null ? "Its time is not clear yet" : `Once: ${momentIn(at, timezone)}`;
}

/** A moment on the clock of a schedule's zone, which may be another than the browser's. */
export function momentIn(at: number, timezone: string): string {
  const words = new Date(at * 1000).toLocaleString("en-GB", {
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: timezone,
  });
  return `${words} (${timezone})`;
}
