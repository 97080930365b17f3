import { type Description, describe } from "../../http/describe.ts";

/** Describes a route for administrators; others get 403. */
export function describeAdmin({ errors = [], ...description }: Omit<Description, "tag">) {
  return describe({ tag: "Administration", ...description, errors: ["admin_required", ...errors] });
}
