import { INTEGRATION_KINDS, type IntegrationKind, INTEGRATIONS } from "../config/integrations.ts";

/** The target of the tools that read earlier messages: there is one only for an instruction that names it. */
export const MEMORY_TARGET = "memory";

/** The built-in targets. In a list, a tool server of the same name is meant only by its whole name (`mcp:github`). */
export const OWN_TARGETS: ReadonlySet<string> = new Set(["ai", MEMORY_TARGET, ...INTEGRATION_KINDS]);

/**
 * Returns whether an entry of a scope means `target`, a whole name; the entry may leave out the prefix of a tool
 * server.
 */
export function means(entry: string, target: string): boolean {
  return entry === target || (`mcp:${entry}` === target && !OWN_TARGETS.has(entry));
}

/** Returns the integration that people call by the name of its service: `github`, `notion`. */
export function integrationCalled(name: string): IntegrationKind | undefined {
  return INTEGRATION_KINDS.find((kind) => serviceOf(kind) === name);
}

/** Returns the first word of the service's name, by which people call it. */
export function serviceOf(kind: IntegrationKind): string {
  return INTEGRATIONS[kind].label.toLowerCase().split(" ", 1)[0] ?? kind;
}

/** The name of a code host as people know it, `github`; undefined for any other target. */
export function codeHostCalled(target: string): string | undefined {
  const kind = INTEGRATION_KINDS.find((one) => one === target);
  return kind?.startsWith("codehost-") ? serviceOf(kind) : undefined;
}
