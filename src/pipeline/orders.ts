import { INTEGRATION_KINDS } from "../config/integrations.ts";
import type { Targets } from "../resources/connections/targets.ts";
import { serviceOf } from "../trust/target-names.ts";
import { STOP } from "../trust/guard/written-orders.ts";
import type { Shelf } from "./fold-contexts.ts";
import { POWERFUL_FLAGS } from "./settings.ts";

/**
 * Returns the words that give power to an instruction: the targets, contexts and macros there are, and the flags that
 * choose who reads, hide, destroy, or last, and the word that ends a schedule.
 */
export function ordersOf(
  { attached, elsewhere }: Targets,
  { nameable, macros }: Pick<Shelf, "nameable" | "macros">,
): string[] {
  const names = [...attached.map(({ name }) => name), ...elsewhere];
  return [
    ...names.flatMap((name) => [`@${name}`, `@${name.replace(/^mcp:/, "")}`]),
    ...INTEGRATION_KINDS.filter((kind) => names.includes(kind)).map((kind) => `@${serviceOf(kind)}`),
    ...nameable.map(({ slug }) => `+${slug}`),
    ...macros.map(({ slug }) => `$${slug}`),
    ...POWERFUL_FLAGS,
    STOP,
  ];
}
