import type { HtmlElement } from "./html-style.ts";

/** The highest number a list begins with. */
const MAX_ITEM = 1_000_000;

/** The numbering of the next list item; null for items without numbers. */
export interface ListMarks {
  next: number | null;
}

/** Returns the list that an element begins; null if it begins none. */
export function listOf({ name, attributes }: HtmlElement): ListMarks | null {
  if (name === "ul") return { next: null };
  if (name !== "ol") return null;
  const start = Number.parseInt(attributes["start"] ?? "1", 10);
  return { next: start >= 0 && start <= MAX_ITEM ? start : 1 };
}

/** Returns the mark of the next list item, and counts on. */
export function takeMark(list: ListMarks): string {
  if (list.next === null) return "- ";
  list.next += 1;
  return `${list.next - 1}. `;
}
