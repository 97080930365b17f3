import { AppError } from "../errors.ts";

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 100;

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** The types of a cursor's parts, in order. Lists with different forms refuse each other's cursors. */
type Form = readonly ("id" | "time")[];
type KeyOf<F extends Form> = { -readonly [Part in keyof F]: F[Part] extends "id" ? string : number };

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Cuts `limit + 1` rows down to a page, with a cursor of its last row if there are more. */
export function pageOf<R, T>(
  rows: R[],
  limit: number,
  see: { view: (row: R) => T; key: (row: R) => (string | number)[] },
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next_cursor = rows.length > limit && last !== undefined ? encodeCursor(see.key(last)) : null;
  return { items: shown.map(see.view), next_cursor };
}

/** Returns the key of the row after which the next page begins. Throws `invalid_cursor`. */
export function decodeCursor<const F extends Form>(cursor: string, form: F): KeyOf<F> {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(key) && key.length === form.length && key.every((part, at) => fits(part, form[at])))
      return key as KeyOf<F>;
  } catch {
    // Any error means the same: this server did not issue the cursor.
  }
  throw new AppError("invalid_cursor", "The cursor is not one that this list gave out.", {
    fix: "Pass next_cursor of the previous page unchanged, or leave cursor out to begin at the newest.",
  });
}

export function encodeCursor(key: (string | number)[]): string {
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

function fits(part: unknown, form: Form[number] | undefined): boolean {
  return form === "id" ? typeof part === "string" && UUID.test(part) : Number.isSafeInteger(part);
}
