import type { TSchema } from "@sinclair/typebox";
import { t } from "elysia";
import { DEFAULT_PAGE, MAX_PAGE } from "../lib/pagination.ts";

/** Query parameters of every paged list. */
export const pageQuery = {
  limit: t.Integer({ title: "limit", minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE }),
  cursor: t.Optional(t.String({ description: "`next_cursor` of the previous page." })),
};

/** The last second of the year 9999, the latest time a query may name. */
export const LAST_SECOND = 253_402_300_799;
export const EXAMPLE_SECOND = 1_768_478_400;

/** Returns the schema of a time in an answer. */
export function moment(what: string) {
  return t.Integer({ description: `${what}, in unix seconds.`, examples: [EXAMPLE_SECOND] });
}

/** Returns the schema of a time in a query. */
export function momentParameter(title: string, what: string) {
  return t.Optional(
    t.Integer({ title, minimum: 0, maximum: LAST_SECOND, description: what, examples: [EXAMPLE_SECOND] }),
  );
}

/** Returns the schema of a page; `next_cursor` is null on the last one. */
export function pageShape<Item extends TSchema>(item: Item) {
  return t.Object({ items: t.Array(item), next_cursor: t.Nullable(t.String()) });
}

/** Schema of `warnings`: members of the request that were ignored. */
export const WarningsShape = t.Array(
  t.Object({
    path: t.String({ description: "Where it stands.", examples: ["body.conten"] }),
    code: t.Literal("unknown_member"),
    did_you_mean: t.Nullable(
      t.String({ description: "The known member that it may be a slip for.", examples: ["content"] }),
    ),
  }),
  {
    $id: "Warnings",
    description:
      "Members of the body, or of the query, that nothing looked at: the first 20 of them. Not there without any.",
  },
);
