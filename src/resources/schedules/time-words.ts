/** Longer texts are no times, and are not read. */
export const MAX_CHARS = 100;

/** The time of day where none is named. */
export const MORNING: Clock = { hour: 9, minute: 0 };

export const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

export const MONTHS = [
  "january",
  "february",
  "march",
  "april",
  "may",
  "june",
  "july",
  "august",
  "september",
  "october",
  "november",
  "december",
];

/** The fewest letters of a name of a day or a month. */
const SHORT_NAME = 3;

export const HOURS_OF_DAY = 24;

export interface Clock {
  hour: number;
  minute: number;
}

/** Returns the words without those that only join others. */
export function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[\s]+/)
    .map((word) => word.replace(/,$/, ""))
    .filter((word) => !/^(|every|each|at|on|the|of)$/.test(word));
}

/** Takes the time of day out of words: "8:00", "9am", "9:30 pm", "noon". Undefined where they name two. */
export function clockIn(words: string[]): { clock: Clock | undefined; words: string[] } | undefined {
  const joined = words.join(" ").replaceAll(/(\d) (am|pm)\b/g, "$1$2");
  const rest: string[] = [];
  let clock: Clock | undefined;
  for (const word of joined.split(" ").filter((each) => each !== "")) {
    const found = clockOf(word);
    if (found === undefined) rest.push(word);
    else if (clock !== undefined) return undefined;
    else clock = found;
  }
  return { clock, words: rest };
}

function clockOf(word: string): Clock | undefined {
  if (word === "noon" || word === "midday") return { hour: 12, minute: 0 };
  if (word === "midnight") return { hour: 0, minute: 0 };
  const [, hours = "", minutes, half] = /^(\d{1,2})(?::(\d{2})(?::00)?)?(am|pm)?$/.exec(word) ?? [];
  // A number alone may be a day as well.
  if (hours === "" || (minutes === undefined && half === undefined)) return undefined;
  const hour = hourOf(Number(hours), half);
  const minute = Number(minutes ?? 0);
  return hour === undefined || minute > 59 ? undefined : { hour, minute };
}

function hourOf(hour: number, half: string | undefined): number | undefined {
  if (half === undefined) return hour < HOURS_OF_DAY ? hour : undefined;
  if (hour < 1 || hour > 12) return undefined;
  return (hour % 12) + (half === "pm" ? 12 : 0);
}

export function dayAndMonth(words: string[]): { day: number; month: number } | undefined {
  if (words.length !== 2) return undefined;
  const days = words.flatMap((word) => dayNumber(word) ?? []);
  const months = words.flatMap((word) => monthNumber(word) ?? []);
  const [[day], [month]] = [days, months];
  return day === undefined || month === undefined ? undefined : { day, month };
}

export function dayNumber(word: string): number | undefined {
  const day = Number(/^(\d{1,2})(?:st|nd|rd|th|\.)?$/.exec(word)?.[1] ?? 0);
  return day >= 1 && day <= 31 ? day : undefined;
}

function monthNumber(word: string): number | undefined {
  const index = MONTHS.findIndex((name) => isNamed(word, name));
  return index === -1 ? undefined : index + 1;
}

export function weekDay(word: string): number | undefined {
  const index = DAYS.findIndex((name) => isNamed(word.replace(/s$/, ""), name) || isNamed(word, name));
  return index === -1 ? undefined : index;
}

/** Whether a word is a name, or its beginning as in "mon" or "thurs". */
function isNamed(word: string, name: string): boolean {
  const letters = word.replace(/\.$/, "");
  return letters.length >= SHORT_NAME && name.startsWith(letters);
}
