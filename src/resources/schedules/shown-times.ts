import { allOf } from "../../lib/lists.ts";
import { DAYS, MONTHS } from "./time-words.ts";

/** A moment as people of the zone write it: "Mon, 30 Nov 2026, 08:00". */
export function momentWords(second: number, timezone: string): string {
  const moment = new Date(second * 1_000);
  return moment.toLocaleString("en-GB", {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: timezone,
  });
}

/** Returns a pattern in words, such as "every weekday at 08:00"; as it is where it is too special for that. */
export function patternWords(pattern: string): string {
  const [minute = "", hour = "", day = "", month = "", weekdays = ""] = pattern.split(" ");
  const days = daysWords(day, month, weekdays);
  const two = (number: string): string => number.padStart(2, "0");
  if (days !== undefined && /^\d+$/.test(hour)) return `${days} at ${two(hour)}:${two(minute)}`;
  return (days === "every day" ? hoursWords(minute, hour) : undefined) ?? `by the pattern "${pattern}"`;
}

function hoursWords(minute: string, hour: string): string | undefined {
  if (hour === "*") return minute === "0" ? "every hour" : `every hour, ${minute} minutes past`;
  const [, step] = /^\*\/(\d+)$/.exec(hour) ?? [];
  return step !== undefined && minute === "0" ? `every ${step} hours` : undefined;
}

function daysWords(day: string, month: string, weekdays: string): string | undefined {
  const all = `${day} ${month} ${weekdays}`;
  if (all === "* * *") return "every day";
  if (all === "* * 1-5" || all === "* * 1,2,3,4,5") return "every weekday";
  if (all === "* * 6,0" || all === "* * 0,6") return "on Saturdays and Sundays";
  if (/^\* \* [0-6](,[0-6])*$/.test(all))
    return `every ${allOf(
      weekdays.split(",").map((n) => capital(DAYS[Number(n)])),
      "and",
    )}`;
  if (all === "L * *") return "on the last day of every month";
  if (/^\d+ \* \*$/.test(all)) return `on day ${day} of every month`;
  if (all === "1 1,4,7,10 *") return "on the first day of every quarter";
  if (/^\d+ \d+ \*$/.test(all)) return `every year on ${day} ${capital(MONTHS[Number(month) - 1])}`;
  return undefined;
}

function capital(name = ""): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
