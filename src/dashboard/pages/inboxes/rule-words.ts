import { allOf } from "../../../lib/lists.ts";
import type { Inbox } from "../../api/shapes.ts";

export type Rule = Inbox["rules"][number];
export type Condition = Rule["when"][number];
export type Field = Condition["field"];

/** What can be looked at, in the order in which it is offered, and what is asked for it. */
export const FIELDS: Record<Field, { label: string; hint: string }> = {
  sender: {
    label: "The sender",
    hint: "One a line: ada@example.com, @example.com, @*.example.com. It counts only where it is proven.",
  },
  subject: { label: "The subject", hint: "Words, one group a line; one of them is enough." },
  text: { label: "The text", hint: "Words, one group a line; one of them is enough." },
  files: { label: "Its files", hint: "One of them is enough." },
  tag: { label: "The +tag of the address", hint: "One a line: “billing” for you+billing@…." },
  authority: { label: "Who wrote it", hint: "One of them is enough." },
  header: {
    label: "A header field",
    hint: "Words in it, one group a line. Left empty, the field only has to be there.",
  },
  size: { label: "Its size", hint: "" },
  time: { label: "When it came", hint: "" },
};

export const FILE_WORDS: Record<string, string> = {
  any: "any file",
  pdf: "a PDF",
  picture: "a picture",
  document: "a text document",
  table: "a table",
  calendar: "an appointment",
  archive: "an archive",
  mail: "another mail",
};

export const AUTHORITY_WORDS: Record<string, string> = {
  owner: "you",
  listed: "somebody on the list",
  stranger: "a stranger",
  unauthenticated: "somebody who proves nothing",
};

export const DAY_WORDS: Record<string, string> = {
  mon: "Monday",
  tue: "Tuesday",
  wed: "Wednesday",
  thu: "Thursday",
  fri: "Friday",
  sat: "Saturday",
  sun: "Sunday",
};

const or = (words: string[]): string => allOf(words, "or");
const and = (words: string[]): string => allOf(words, "and");
const quoted = (words: string[] = []): string => or(words.map((word) => `“${word}”`));
export const KB = 1_024;

/** A condition as a clause: "the subject has “rent” or “lease”". */
function conditionWords({ field, is = [], contains = [], not = false, ...more }: Condition): string {
  const has = not ? "does not have" : "has";
  const words: Record<Field, () => string> = {
    sender: () => `the sender is ${not ? "not " : ""}${or(is)}`,
    subject: () => `the subject ${has} ${quoted(contains)}`,
    text: () => `the text ${has} ${quoted(contains)}`,
    files: () => `it ${has} ${or(is.map((kind) => FILE_WORDS[kind] ?? kind))}`,
    tag: () => `it ${not ? "does not come" : "comes"} with +${or(is)}`,
    authority: () =>
      `${or(is.map((who) => AUTHORITY_WORDS[who] ?? who))} ${not ? "did not write" : "wrote"} it`,
    header: () =>
      contains.length === 0
        ? `it ${has} a field ${more.name ?? ""}`
        : `its field ${more.name ?? ""} ${has} ${quoted(contains)}`,
    size: () => `it is ${not ? "not " : ""}${sizeWords(more)}`,
    time: () => `it ${not ? "does not come" : "comes"} ${timeWords(more)}`,
  };
  return words[field]();
}

function sizeWords({ over_bytes, under_bytes }: Pick<Condition, "over_bytes" | "under_bytes">): string {
  const kb = (bytes: number): string => `${Math.round(bytes / KB)} KB`;
  return and([
    ...(over_bytes === undefined ? [] : [`larger than ${kb(over_bytes)}`]),
    ...(under_bytes === undefined ? [] : [`smaller than ${kb(under_bytes)}`]),
  ]);
}

function timeWords({ days = [], from, to, zone }: Pick<Condition, "days" | "from" | "to" | "zone">): string {
  return [
    ...(days.length === 0 ? [] : [`on ${or(days.map((day) => DAY_WORDS[day] ?? day))}`]),
    ...(from === undefined ? [] : [`from ${from}`]),
    ...(to === undefined ? [] : [`until ${to}`]),
    ...(zone === undefined ? [] : [`(${zone})`]),
  ].join(" ");
}

/** Whose clock times are by, as a sentence. */
export function clockWords(zone: string | undefined): string {
  return `By the clock of ${zone ?? "your time zone"}.`;
}

/** What rules do, as clauses. */
export function actionWords(acts: Partial<Rule["do"]>): string[] {
  const options = Object.entries(acts.options ?? {}).map(([name, value]) =>
    value === false ? `--no-${name}` : value === true ? `--${name}` : `--${name}=${value}`,
  );
  return [
    ...(acts.skip ? ["leave it out"] : []),
    ...(acts.keep ? ["keep it without working on it"] : []),
    ...(acts.wait ? [waitWords(acts.wait)] : []),
    ...(acts.forward_to ? [`forward it to ${acts.forward_to}`] : []),
    ...(acts.authority ? ["read its words as a stranger’s"] : []),
    ...(acts.instruction ? [`ask for “${shortened(acts.instruction)}” where it asks for nothing`] : []),
    ...(acts.context_ids?.length
      ? [`work by ${acts.context_ids.length === 1 ? "a context" : `${acts.context_ids.length} contexts`}`]
      : []),
    ...(acts.connection_id ? ["use another connection"] : []),
    ...(acts.model ? [`use the model ${acts.model}`] : []),
    ...(options.length > 0 ? [`work with ${and(options)}`] : []),
    ...(acts.answer === false ? ["mail no answer"] : []),
    ...(acts.tags?.length ? [`tag it ${and(acts.tags.map((tag) => `#${tag}`))}`] : []),
    ...(acts.stop ? ["look at no rule below"] : []),
  ];
}

function waitWords({ until, days = [], zone }: NonNullable<Rule["do"]["wait"]>): string {
  const on = days.length === 0 ? "" : ` on ${or(days.map((day) => DAY_WORDS[day] ?? day))}`;
  return `let it wait until ${until}${on}${zone === undefined ? "" : ` (${zone})`}`;
}

const SHORT_CHARS = 60;

function shortened(text: string): string {
  return text.length <= SHORT_CHARS ? text : `${text.slice(0, SHORT_CHARS)}…`;
}

/** A rule as a sentence: "If the subject has “rent”: leave it out." */
export function ruleWords(rule: Rule): string {
  const all = rule.when.map(conditionWords);
  const joined = rule.match === "any" ? or(all) : and(all);
  const asks = rule.question ? [`the model says yes to “${rule.question}”`] : [];
  const when = and([...(joined === "" ? [] : [joined]), ...asks]);
  return `${when === "" ? "Every message" : `If ${when}`}: ${and(actionWords(rule.do))}.`;
}
