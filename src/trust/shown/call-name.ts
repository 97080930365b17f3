import { codeHostCalled, integrationCalled, OWN_TARGETS } from "../target-names.ts";

const MAX_NAME_CHARS = 64;

interface Called {
  tool: string;
  target: string;
}

/** A call, as a sentence and a page name it. */
export function callName({ tool, target }: Called): string {
  return `${plainName(tool)} of @${shortTarget({ target })}`;
}

/** The name of a tool, whose author is somebody else, as a name and nothing more. */
export function plainName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_.-]/g, "_").slice(0, MAX_NAME_CHARS);
}

/** The name of a target as an instruction may have it: that of a tool server is whole where an integration has the short one. */
export function shortTarget({ target }: Pick<Called, "target">): string {
  const short = target.replace(/^mcp:/, "");
  const is_taken = OWN_TARGETS.has(short) || integrationCalled(short) !== undefined;
  return codeHostCalled(target) ?? (is_taken ? target : short);
}
