import { means } from "../../../trust/target-names.ts";

/** The shortest that an instruction may call a target by: a tool server needs no prefix, unless a service is called so. */
export function shortTarget(target: string): string {
  const name = target.replace(/^mcp:/, "");
  return means(name, target) ? name : target;
}
