import type { Connection, Inbox, InboxChange } from "../../api/shapes.ts";
import { MEMORY_TARGET, means } from "../../../trust/target-names.ts";

/** Something that an inbox may be allowed to use: a tool server, the accounts at one service, or earlier messages. */
export interface Tool {
  /** Its name in an instruction. */
  target: string;
  label: string;
  /** The connection of a tool server, which an inbox has to list; null for a service, which all inboxes have. */
  server_id: string | null;
}

/** What looks through earlier messages. It changes nothing, and is used only where an instruction names it. */
export const MEMORY: Tool = { target: MEMORY_TARGET, label: "Earlier messages", server_id: null };

/** The tools of an account's connections. */
export function toolsOf(connections: Connection[]): Tool[] {
  const tools = new Map<string, Tool>();
  for (const { id, target, label, category } of connections)
    if (target !== null && !tools.has(target))
      tools.set(target, { target, label, server_id: category === "mcp" ? id : null });
  return [...tools.values()];
}

type Rules = Pick<Inbox, "scope" | "mcp_connection_ids">;

/** Whether the list of tool servers alone decides what may be used. */
function usesAll({ scope }: Pick<Inbox, "scope">): boolean {
  return scope === null || scope.targets === null;
}

export function mayUse({ scope, mcp_connection_ids }: Rules, { target, server_id }: Tool): boolean {
  const attached = server_id === null || mcp_connection_ids.includes(server_id);
  return attached && (usesAll({ scope }) || lists(scope?.targets ?? [], target));
}

/** Whether a tool server is in the inbox's list, but not allowed by its scope. */
export function isIdle(rules: Rules, tool: Tool): boolean {
  return tool.server_id !== null && rules.mcp_connection_ids.includes(tool.server_id) && !mayUse(rules, tool);
}

export function actsUnasked({ scope }: Rules, { target }: Tool): boolean {
  return lists(scope?.autonomous ?? [], target);
}

/** The change that allows a tool. As long as nothing else is restricted, it only adds a tool server to the list. */
export function allow(rules: Rules, tool: Tool, tools: Tool[]): InboxChange {
  const { server_id, target } = tool;
  const { scope, mcp_connection_ids: ids } = rules;
  return {
    ...(server_id === null || ids.includes(server_id) ? {} : { mcp_connection_ids: [...ids, server_id] }),
    ...(scope === null || usesAll(rules)
      ? {}
      : { scope: { ...scope, targets: [...targetsOf(rules, tools), target] } }),
  };
}

export function forbid(rules: Rules, tool: Tool, tools: Tool[]): InboxChange {
  const { scope, mcp_connection_ids: ids } = rules;
  const without = (list: string[]): string[] => list.filter((entry) => !means(entry, tool.target));
  return {
    ...(tool.server_id === null ? {} : { mcp_connection_ids: ids.filter((id) => id !== tool.server_id) }),
    ...(tool.server_id !== null && usesAll(rules) && !actsUnasked(rules, tool)
      ? {}
      : {
          scope: {
            targets: leaving(without(targetsOf(rules, tools)), tool),
            autonomous: without(scope?.autonomous ?? []),
          },
        }),
  };
}

/** An empty list would also take away the tool that makes files, which has nothing to do with earlier messages. */
function leaving(targets: string[], { target }: Tool): string[] {
  return targets.length === 0 && target === MEMORY_TARGET ? ["ai"] : targets;
}

export function letActUnasked(rules: Rules, { target }: Tool, tools: Tool[]): InboxChange {
  const autonomous = [...(rules.scope?.autonomous ?? []), target];
  const targets = rules.scope ? rules.scope.targets : targetsOf(rules, tools);
  return { scope: { targets, autonomous } };
}

export function letActWhenNamed({ scope }: Rules, { target }: Tool): InboxChange {
  return {
    scope: scope && { ...scope, autonomous: scope.autonomous.filter((entry) => !means(entry, target)) },
  };
}

/** The targets in the scope or, without one, those that the inbox may use anyway. */
function targetsOf(rules: Rules, tools: Tool[]): string[] {
  if (rules.scope?.targets) return rules.scope.targets;
  return tools.filter((tool) => mayUse(rules, tool)).map(({ target }) => target);
}

function lists(entries: string[], target: string): boolean {
  return entries.some((entry) => means(entry, target));
}
