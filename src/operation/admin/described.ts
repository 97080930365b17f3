import { type Description, describe } from "../../http/describe.ts";

/** All of them refuse whoever is no administrator. */
export function describeAdmin({ errors = [], ...description }: Omit<Description, "tag">) {
  return describe({ tag: "Administration", ...description, errors: ["admin_required", ...errors] });
}
