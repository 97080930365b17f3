import { INTEGRATION_KINDS, type IntegrationKind, INTEGRATIONS } from "../config/integrations.ts";

/** What the service itself has; a tool server that is called so as well is meant by its whole name only. */
export const OWN_TARGETS: ReadonlySet<string> = new Set(["ai", ...INTEGRATION_KINDS]);

/** Whether an entry of a scope is `target`, which is a whole name; a tool server may be listed without its prefix. */
export function means(entry: string, target: string): boolean {
  return entry === target || (`mcp:${entry}` === target && !OWN_TARGETS.has(entry));
}

/** The integration that people call by the name of its service: `github`, `notion`. */
export function integrationCalled(name: string): IntegrationKind | undefined {
  return INTEGRATION_KINDS.find((kind) => serviceOf(kind) === name);
}

/** The first word of the name of its service, by which people call it. */
export function serviceOf(kind: IntegrationKind): string {
  return INTEGRATIONS[kind].label.toLowerCase().split(" ", 1)[0] ?? kind;
}
