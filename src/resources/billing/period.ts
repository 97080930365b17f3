import type { BillingAccountRow, Plan } from "../../db/schema.ts";
import { isTime } from "../../lib/is-time.ts";

/** The time that an allowance is for, in unix seconds; `end` is the first second of the next one. */
export interface Period {
  /** Its name in the ledger: `YYYY-MM` for a calendar month, else the moment at which it began. */
  key: string;
  start: number;
  end: number;
}

/** What a period is worked out from; without a subscription, all but the plan is null. */
export type Paid = { plan: Plan } & Pick<BillingAccountRow, "interval" | "period_start" | "period_end">;

/**
 * The period that an account is in: a month of its subscription, or else the calendar month (UTC). A subscription
 * whose renewal has not been heard of yet goes on month by month.
 */
export function periodOf(paid: Paid, now: number): Period {
  const { period_start: start, period_end: end } = paid;
  // A subscription that has ended has no times.
  if (paid.plan === "free" || start === null || end === null) return calendarMonth(now);
  // A damaged disk may have left other numbers; the provider's next word brings the right ones.
  if (!isTime(start) || !isTime(end) || start < 0 || end <= start) return calendarMonth(now);
  if (now >= end) return monthFrom(end, Number.POSITIVE_INFINITY, now);
  return paid.interval === "year" ? monthFrom(start, end, now) : periodAt(start, end);
}

/** Cached, because every call asks for it several times, and it stays the same for a month. */
let month: Period = { key: "", start: 0, end: 0 };

export function calendarMonth(now: number): Period {
  if (now < month.start || now >= month.end) month = monthOf(now);
  return month;
}

function monthOf(now: number): Period {
  const date = new Date(now * 1_000);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const key = date.toISOString().slice(0, "YYYY-MM".length);
  return { key, start: Date.UTC(year, month, 1) / 1_000, end: Date.UTC(year, month + 1, 1) / 1_000 };
}

/** Returns the month that contains `now`, where months are counted from `first`; none extends beyond `last`. */
function monthFrom(first: number, last: number, now: number): Period {
  let months = 0;
  while (addMonths(first, months + 1) <= now) months += 1;
  return periodAt(addMonths(first, months), Math.min(addMonths(first, months + 1), last));
}

function periodAt(start: number, end: number): Period {
  return {
    key: `${new Date(start * 1_000).toISOString().slice(0, "YYYY-MM-DDTHH:MM:SS".length)}Z`,
    start,
    end,
  };
}

/** Returns the same day of a later month, or its last day if it has no such day. */
function addMonths(second: number, months: number): number {
  const date = new Date(second * 1_000);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + months, 1);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime() / 1_000;
}
