import { codeHostCalled, means } from "../../../trust/target-names.ts";

/**
 * The shortest name of a target in an instruction: that of a tool server needs no prefix, unless a service is called
 * so, and a code host is called by the name of its service.
 */
export function shortTarget(target: string): string {
  const name = target.replace(/^mcp:/, "");
  return codeHostCalled(target) ?? (means(name, target) ? name : target);
}
