import type { HtmlElement } from "./html-style.ts";

/** The highest number a list begins with. */
const MAX_ITEM = 1_000_000;

/** What the next item of a list is numbered; null where items have no numbers. */
export interface ListMarks {
  next: number | null;
}

/** The list that an element begins; null if it is none. */
export function listOf({ name, attributes }: HtmlElement): ListMarks | null {
  if (name === "ul") return { next: null };
  if (name !== "ol") return null;
  const start = Number.parseInt(attributes["start"] ?? "1", 10);
  return { next: start >= 0 && start <= MAX_ITEM ? start : 1 };
}

/** The mark of the next item of a list. */
export function nextMark(list: ListMarks): string {
  if (list.next === null) return "- ";
  list.next += 1;
  return `${list.next - 1}. `;
}
