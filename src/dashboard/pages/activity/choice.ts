import type { MessageFilters } from "../../api/messages.ts";
import { SOURCES, STATUSES } from "./words.ts";

/** The filters of the activity, as the address of the page has them. */
export interface Choice {
  status?: string;
  source?: string;
  inbox_id?: string;
  q?: string;
  tag?: string;
  /** Days such as 2026-05-03, both included. */
  from?: string;
  to?: string;
}

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

const MEMBERS: Record<keyof Choice, (value: string) => boolean> = {
  status: (value) => Object.hasOwn(STATUSES, value),
  source: (value) => Object.hasOwn(SOURCES, value),
  inbox_id: (value) => /^[\da-f-]{36}$/i.test(value),
  q: (value) => value.length <= 200,
  tag: (value) => value.length <= 100,
  from: isDay,
  to: isDay,
};

/** Reads the filters in an address; people also write addresses by hand, so what makes no sense is left out. */
export function choiceOf(search: Record<string, unknown>): Choice {
  const given = Object.entries(MEMBERS).flatMap(([name, makesSense]) => {
    const value = search[name];
    // The router turns a text that looks like a number into one.
    const text = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
    return text !== "" && makesSense(text) ? [[name, text]] : [];
  });
  return Object.fromEntries(given) as Choice;
}

/** Turns days into moments, in the time zone of the browser, from their first second to their last. */
export function filtersOf({ from, to, ...same }: Choice): MessageFilters {
  return {
    ...(same as MessageFilters),
    since: from === undefined ? undefined : secondOf(`${from}T00:00:00`),
    until: to === undefined ? undefined : secondOf(`${to}T23:59:59`),
  };
}

function secondOf(local_time: string): number {
  return Math.floor(new Date(local_time).getTime() / 1_000);
}
