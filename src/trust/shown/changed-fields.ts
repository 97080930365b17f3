import { canonicalJson } from "../../lib/canonical-json.ts";
import { parseJson } from "../../lib/foreign-json.ts";
import { LINE_CHARS, linesOf, MAX_SHOWN_CHARS, nameOf, plainName, wrapped } from "./shown-call.ts";

/** A call of the same server that has succeeded earlier in the run, and what it was answered. */
export interface Answered {
  args: Record<string, unknown>;
  /** Untrusted. */
  text: string;
}

/** More of a value, before or after, nobody compares; the work on it is bounded with it. */
const MAX_LINES = 200;
const MAX_VALUE_CHARS = 20_000;
/** What is shown of one argument: its new value stands whole among the arguments. */
const MAX_SHOWN_LINES = 60;

/**
 * Returns what a call would change, as people read it: each argument that differs from the value which the server itself has
 * answered for the same item. Null where nothing is known to differ. The old values are texts of others: they are escaped as the
 * arguments are, and none can look like a name, a mark or a new value.
 */
export function changedFields(
  tool: string,
  args: Record<string, unknown>,
  answers: Answered[],
): string | null {
  const named = namedBy(tool, args);
  if (named === null) return null;
  const item = itemIn(answers, args, named);
  if (item === null) return null;
  const changed = [...changesIn(args, item, "")].filter(({ way }) => way !== named.way);
  const shown = changed.flatMap(shownChange);
  return shown.length === 0 ? null : asText(shown);
}

function asText(shown: string[]): string {
  const kept: string[] = [];
  let room = MAX_SHOWN_CHARS;
  for (const one of shown) {
    room -= one.length + 1;
    if (room < 0) break;
    kept.push(one);
  }
  const left = shown.length - kept.length;
  return [...kept, ...(left === 0 ? [] : [`⟨${left} more, too long to show⟩`])].join("\n");
}

/** The argument that says which item a call is about. */
interface Named {
  way: string;
  /** The name of the argument, and what an item calls the same: `event_id` is its `id`. */
  names: [string, string];
  value: string;
}

/** The names of ids, with what they are an id of: `id`, `event_id`, `issueNumber`. */
const ID_NAME = /^(?:(.{1,60})[_-])?(id|uid|uuid|key|number)$/i;
const CAMEL_ID_NAME = /^(.{0,59}[a-z0-9])(I[dD]|U[iI][dD]|U[uU][iI][dD]|Key|Number)$/;

/** Which item a call is about; null where that is not clear, as where it has several ids. */
function namedBy(tool: string, args: Record<string, unknown>): Named | null {
  const words = wordsOf(tool);
  for (const [prefix, scope] of [["", args] as const, ...wrappersIn(args)]) {
    const ids = Object.entries(scope).flatMap(([name, value]) => idOf(prefix + plainName(name), name, value));
    const plain = ids.filter(({ of }) => of === "");
    const fitting = ids.filter(({ of }) => of !== "" && wordsOf(of).every((word) => words.includes(word)));
    const [only, other] = plain.length > 0 ? plain : fitting.length > 0 ? fitting : ids;
    if (only !== undefined) return other === undefined ? only : null;
  }
  return null;
}

function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

function idOf(way: string, name: string, value: unknown): (Named & { of: string })[] {
  const [, of = "", kind = ""] = ID_NAME.exec(name) ?? CAMEL_ID_NAME.exec(name) ?? [];
  const is_id = kind !== "" && (typeof value === "string" || typeof value === "number") && value !== "";
  return is_id ? [{ way, names: [name, kind.toLowerCase()], value: String(value), of }] : [];
}

/** The arguments that hold the fields of an item together, such as `event` or `fields`. */
function wrappersIn(args: Record<string, unknown>): [string, Record<string, unknown>][] {
  return Object.entries(args).flatMap(([name, value]) =>
    isObject(value) ? [[`${plainName(name)}.`, value] as [string, Record<string, unknown>]] : [],
  );
}

/** What was answered about an item, each field as it was answered last. Null where one answer has several of that id, such as a comment. */
function itemIn(
  answers: Answered[],
  args: Record<string, unknown>,
  named: Named,
): Record<string, unknown> | null {
  const told = answers.map((answer) =>
    objectsIn(answer.text).filter((item) => isNamed(item, named) && isOfSamePlace(item, args, answer.args)),
  );
  if (told.some(([first, ...others]) => others.some((other) => !isSame(first, other)))) return null;
  const found = told.flat();
  return found.length === 0 ? null : Object.fromEntries(found.flatMap((item) => Object.entries(item)));
}

function isNamed(item: Record<string, unknown>, { names: [name, kind], value }: Named): boolean {
  // What has an id of its own may name another item by its longer name, as an attendee names the event.
  const id = Object.hasOwn(item, kind) ? item[kind] : Object.hasOwn(item, name) ? item[name] : null;
  return (typeof id === "string" || typeof id === "number") && String(id) === value;
}

/** Whether both calls went to the same place: what both have, and the item has not, says where it is, as `repo`. */
function isOfSamePlace(
  item: Record<string, unknown>,
  args: Record<string, unknown>,
  read_with: Record<string, unknown>,
): boolean {
  return Object.entries(read_with).every(
    ([name, value]) => Object.hasOwn(item, name) || !Object.hasOwn(args, name) || isSame(value, args[name]),
  );
}

/** All objects in an answer that is JSON and nothing else, as another text may quote what somebody has written. */
function objectsIn(text: string): Record<string, unknown>[] {
  // A server that answers with several values puts each on lines of its own.
  const values = text.split(/\n(?=[[{])/).map(parseJson);
  if (values.includes(undefined)) return [];
  const found: Record<string, unknown>[] = [];
  const left = values.toReversed();
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value !== "object" || value === null) continue;
    if (isObject(value)) found.push(value);
    for (const inner of Object.values(value).toReversed()) left.push(inner);
  }
  return found;
}

interface Change {
  way: string;
  old: unknown;
  value: unknown;
}

/** The arguments that an item has as well, with another value. */
function* changesIn(
  args: Record<string, unknown>,
  item: Record<string, unknown>,
  way: string,
): Generator<Change> {
  for (const [name, value] of Object.entries(args)) {
    const path = way + plainName(name);
    const old = Object.hasOwn(item, name) ? item[name] : undefined;
    if (old === undefined) {
      if (way === "" && isObject(value)) yield* changesIn(value, item, `${path}.`);
    } else if (isObject(old) && isObject(value)) yield* changesIn(value, old, `${path}.`);
    else if (!isSame(old, value)) yield { way: path, old, value };
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSame(a: unknown, b: unknown): boolean {
  const scalar = (value: unknown): boolean => typeof value !== "object" || value === null;
  return scalar(a) && scalar(b) ? String(a) === String(b) : canonicalJson(a) === canonicalJson(b);
}

function shownChange({ way, old, value }: Change): string[] {
  const name = nameOf(way);
  const [before, after] = [linesBy(old), linesBy(value)];
  if (before === null || after === null)
    return [`${name}: ⟨too long to compare: ${sizeOf(old)} → ${sizeOf(value)}⟩`];
  // Blanks at the end of a line are no difference to whoever reads it.
  if (Bun.deepEquals(before, after)) return [];
  const line = `${name} ⟨was⟩: ${before.join("")} → ⟨becomes⟩: ${after.join("")}`;
  if (before.length === 1 && after.length === 1 && line.length <= LINE_CHARS) return [line];
  const lines = differencesOf(before, after).flatMap(({ sign, text }) =>
    wrapped(text, [`  ${sign} │ `, "    ┆ "]),
  );
  const left = lines.length - MAX_SHOWN_LINES;
  const rest = left > 0 ? [`  ⟨${left} more lines⟩`] : [];
  return [[`${name} ⟨what differs⟩:`, ...lines.slice(0, MAX_SHOWN_LINES), ...rest].join("\n")];
}

/** The lines of a value as people read them; those of a list, one after the other. Null where they are too many. */
function linesBy(value: unknown): string[] | null {
  const parts: unknown[] = Array.isArray(value) && value.length > 0 ? value : [value];
  const texts = parts.map((part) =>
    typeof part === "object" && part !== null ? JSON.stringify(part) : part,
  );
  if (texts.reduce<number>((sum, text) => sum + String(text).length, 0) > MAX_VALUE_CHARS) return null;
  const lines = texts.flatMap(linesOf);
  return lines.length > MAX_LINES ? null : lines;
}

function sizeOf(value: unknown): string {
  const { length } = typeof value === "string" ? value : JSON.stringify(value);
  return `${length.toLocaleString("en")} ${length === 1 ? "character" : "characters"}`;
}

interface Difference {
  sign: "-" | "+";
  text: string;
}

/** The lines that one of two texts has alone, in their order, by their longest common subsequence. */
function differencesOf(before: string[], after: string[]): Difference[] {
  const common = commonOf(before, after);
  const found: Difference[] = [];
  let [at, to] = [0, 0];
  while (at < before.length || to < after.length) {
    const [old = "", fresh = ""] = [before[at], after[to]];
    if (at < before.length && to < after.length && old === fresh) [at, to] = [at + 1, to + 1];
    else if (to >= after.length || (at < before.length && common(at + 1, to) >= common(at, to + 1))) {
      found.push({ sign: "-", text: old });
      at += 1;
    } else {
      found.push({ sign: "+", text: fresh });
      to += 1;
    }
  }
  return found;
}

/** Returns how many lines two texts have in common from a line of each on. */
function commonOf(before: string[], after: string[]): (at: number, to: number) => number {
  const width = after.length + 1;
  const counts = new Uint16Array((before.length + 1) * width);
  const common = (at: number, to: number): number => counts[at * width + to] ?? 0;
  for (let at = before.length - 1; at >= 0; at -= 1)
    for (let to = after.length - 1; to >= 0; to -= 1)
      counts[at * width + to] =
        before[at] === after[to]
          ? common(at + 1, to + 1) + 1
          : Math.max(common(at + 1, to), common(at, to + 1));
  return common;
}
