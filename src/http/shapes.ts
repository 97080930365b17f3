import type { TSchema } from "@sinclair/typebox";
import { t } from "elysia";

/** A page of a list; `next_cursor` is null on the last one. */
export function pageShape<Item extends TSchema>(item: Item) {
  return t.Object({ items: t.Array(item), next_cursor: t.Nullable(t.String()) });
}
