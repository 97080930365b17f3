import type { Connection, Inbox, InboxChange } from "../../api/shapes.ts";
import { means } from "../../../trust/target-names.ts";

/** Something that an inbox may be allowed to use: a tool server, or the accounts at one service. */
export interface Tool {
  /** As an instruction names it. */
  target: string;
  label: string;
  /** The id of a tool server, which an inbox has to have in its list; services are everywhere. */
  server_id: string | null;
}

export function toolsOf(connections: Connection[]): Tool[] {
  const tools = new Map<string, Tool>();
  for (const { id, target, label, category } of connections)
    if (target !== null && !tools.has(target))
      tools.set(target, { target, label, server_id: category === "mcp" ? id : null });
  return [...tools.values()];
}

type Rules = Pick<Inbox, "scope" | "mcp_connection_ids">;

/** Whether nothing but the list of tool servers says what may be used. */
function usesAll({ scope }: Pick<Inbox, "scope">): boolean {
  return scope === null || scope.targets === null;
}

export function mayUse({ scope, mcp_connection_ids }: Rules, { target, server_id }: Tool): boolean {
  const attached = server_id === null || mcp_connection_ids.includes(server_id);
  return attached && (usesAll({ scope }) || lists(scope?.targets ?? [], target));
}

/** Whether a tool server is in the inbox's list and may not be used all the same. */
export function isIdle(rules: Rules, tool: Tool): boolean {
  return tool.server_id !== null && rules.mcp_connection_ids.includes(tool.server_id) && !mayUse(rules, tool);
}

export function actsUnasked({ scope }: Rules, { target }: Tool): boolean {
  return lists(scope?.autonomous ?? [], target);
}

/** A tool server follows its list alone as long as nothing else is restricted. */
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
          scope: { targets: without(targetsOf(rules, tools)), autonomous: without(scope?.autonomous ?? []) },
        }),
  };
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

/** The list that stands, or what it would be if it had to be written down. */
function targetsOf(rules: Rules, tools: Tool[]): string[] {
  if (rules.scope?.targets) return rules.scope.targets;
  return tools.filter((tool) => mayUse(rules, tool)).map(({ target }) => target);
}

function lists(entries: string[], target: string): boolean {
  return entries.some((entry) => means(entry, target));
}
