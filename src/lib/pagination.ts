import { AppError } from "../errors.ts";

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 100;

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** Cuts `limit + 1` rows down to a page; the cursor names the last row that is on it. */
export function pageOf<R, T>(
  rows: R[],
  limit: number,
  see: { view: (row: R) => T; key: (row: R) => string[] },
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next_cursor = rows.length > limit && last !== undefined ? encodeCursor(see.key(last)) : null;
  return { items: shown.map(see.view), next_cursor };
}

/** The key of the row to go on after, of `parts` strings. Throws `invalid_cursor`. */
export function decodeCursor(cursor: string, parts: number): string[] {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(key) && key.length === parts && key.every((part) => typeof part === "string"))
      return key;
  } catch {
    // Falls through: whatever is wrong with it, it is not one of ours.
  }
  throw new AppError("invalid_cursor", "The cursor is not one that this server gave out.", {
    fix: "Pass next_cursor of the previous page unchanged, or leave cursor out to begin at the newest.",
  });
}

function encodeCursor(key: string[]): string {
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}
