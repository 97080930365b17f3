import type { App } from "../../app.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { dayAt, DAY_SECONDS } from "../../lib/durations.ts";

const DAYS = 30;

interface Day {
  /** `YYYY-MM-DD`, UTC. */
  day: string;
  messages: number;
  mails_in: number;
  mails_out: number;
  input_tokens: number;
  output_tokens: number;
}

export interface Days {
  list: () => Promise<Day[]>;
}

/** Counts the work of the last 30 days, the oldest first. The count of a past day is cached while the server runs. */
export function createDays(app: App): Days {
  const over = new Map<number, Day>();
  const dayAt = async (from: number): Promise<Day> => {
    const known = over.get(from);
    if (known) return known;
    const counted = await countDay(app, from);
    // A run may continue past midnight, so a day is cached one day later.
    if (from + 2 * DAY_SECONDS < app.now()) over.set(from, counted);
    return counted;
  };
  return {
    async list() {
      const today = app.now() - (app.now() % DAY_SECONDS);
      const days: Day[] = [];
      for (let ago = DAYS - 1; ago >= 0; ago--) days.push(await dayAt(today - ago * DAY_SECONDS));
      for (const from of over.keys()) if (from <= today - DAYS * DAY_SECONDS) over.delete(from);
      return days;
    },
  };
}

async function countDay({ db }: App, from: number): Promise<Day> {
  const ids = { first: firstIdAt(from), end: firstIdAt(from + DAY_SECONDS) };
  const messages = await db
    .selectFrom("messages")
    .select((eb) => [
      eb.fn.countAll<number>().as("n"),
      eb.fn.countAll<number>().filterWhere("source", "=", "email").as("mails_in"),
      eb.fn.coalesce(eb.fn.sum<number>("input_tokens"), eb.lit(0)).as("input_tokens"),
      eb.fn.coalesce(eb.fn.sum<number>("output_tokens"), eb.lit(0)).as("output_tokens"),
    ])
    .where("id", ">=", ids.first)
    .where("id", "<", ids.end)
    .executeTakeFirstOrThrow();
  const { mails_out } = await db
    .selectFrom("outgoing_mails")
    .select(({ fn }) => fn.countAll<number>().as("mails_out"))
    .where("id", ">=", ids.first)
    .where("id", "<", ids.end)
    .where("status", "=", "sent")
    .executeTakeFirstOrThrow();
  const { n, ...sums } = messages;
  const day = dayAt(from);
  return { day, messages: n, ...sums, mails_out };
}
