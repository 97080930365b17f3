import { storedJson } from "../../lib/stored-json.ts";
import type { Scope } from "../../db/inbox-columns.ts";
import type { App } from "../../app.ts";
import { budgetColumn } from "../billing/budget-column.ts";
import { refuseOverCap } from "../billing/plans.ts";
import { onlyListed } from "../contexts/scope.ts";
import { targetNamed, toolServerNames } from "../connections/targets.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";
import { OWN_TARGETS } from "../../trust/target-names.ts";
import { oneLine } from "../../lib/one-line.ts";
import { isLongerThan } from "../../lib/text-length.ts";
import { normalizeAllowlist } from "./allowlist.ts";
import type { InboxSettings } from "./body-shapes.ts";
import { refuseForeignContexts, refuseNoModel } from "./references.ts";
import { checkedRules } from "./rules/check.ts";

const MAX_LABEL_CHARS = 100;
const MAX_QUOTED_CHARS = 100;
/** The longest default instruction, as that of a call. */
const MAX_INSTRUCTION_CHARS = 10_000;

export interface InboundPolicy {
  /** Answer strangers whose address could not be authenticated. */
  reply_to_unauthenticated: boolean;
  /** Route newsletters and other bulk mail, without an answer. */
  process_bulk: boolean;
  /** Route mail of strangers whose address could not be authenticated, so that whoever writes costs a run. */
  process_unauthenticated: boolean;
}

const DEFAULT_POLICY: InboundPolicy = {
  reply_to_unauthenticated: false,
  process_bulk: false,
  process_unauthenticated: false,
};

/** The policy of an inbox; a row of an earlier version lacks some of its members. */
export function policyOf({ inbound_policy }: Pick<InboxRow, "inbound_policy">): InboundPolicy {
  return { ...DEFAULT_POLICY, ...storedJson<Partial<InboundPolicy>>(inbound_policy, {}) };
}

/** The settings of an inbox for which its owner has set nothing, or which is deleted. */
export const NOTHING_SET = {
  default_connection_id: null,
  mcp_connection_ids: "[]",
  allowlist_senders: "[]",
  scope: null,
  retention_days: null,
  paused: null,
  default_instruction: null,
  rules: "[]",
  monthly_budget: null,
} satisfies Partial<InboxRow>;

/** The settings of a new inbox of which nothing is said. */
export const NEW_INBOX = {
  ...NOTHING_SET,
  context_ids: null,
  every_context: 1,
  reply_enabled: 1,
  inbound_policy: JSON.stringify(DEFAULT_POLICY),
} satisfies Partial<InboxRow>;

interface Change {
  user: UserRow;
  settings: InboxSettings;
  /** What stays where the change does not name it. */
  before: Pick<InboxRow, "inbound_policy" | "context_ids">;
}

/** The columns that the given members set; references and list sizes are checked here. */
export async function columnsOf(app: App, tx: Db, change: Change): Promise<Partial<InboxRow>> {
  const { user, settings, before } = change;
  const { label, reply_enabled, scope, inbound_policy, retention_days, paused } = settings;
  const columns: Partial<InboxRow> = { ...(await listColumns(app, tx, change)), ...budgetColumn(settings) };
  if (label !== undefined) columns.label = checkedLabel(label ?? "");
  if (reply_enabled !== undefined) columns.reply_enabled = reply_enabled ? 1 : 0;
  if (retention_days !== undefined) columns.retention_days = retention_days;
  if (paused !== undefined) columns.paused = paused;
  if (settings.default_instruction !== undefined)
    columns.default_instruction = checkedInstruction(settings.default_instruction ?? "");
  if (inbound_policy !== undefined)
    columns.inbound_policy = JSON.stringify({ ...policyOf(before), ...inbound_policy });
  if (settings.rules !== undefined)
    columns.rules = JSON.stringify(await checkedRules(tx, user, settings.rules));
  if (scope !== undefined) columns.scope = await checkedScope(tx, user, scope);
  return columns;
}

async function listColumns(app: App, tx: Db, { user, settings, before }: Change): Promise<Partial<InboxRow>> {
  const { default_connection_id, mcp_connection_ids, context_ids, allowlist_senders } = settings;
  const columns: Partial<InboxRow> = {};
  if (default_connection_id !== undefined) {
    await refuseNoModel(tx, user, default_connection_id);
    columns.default_connection_id = default_connection_id;
  }
  if (mcp_connection_ids !== undefined) {
    const ids = [...new Set(mcp_connection_ids)];
    refuseOverCap(app, user, "mcp_per_inbox", { wanted: ids.length });
    await refuseNoToolServers(tx, user, ids);
    columns.mcp_connection_ids = JSON.stringify(ids);
  }
  if (context_ids) await refuseForeignContexts(tx, user, context_ids);
  if (context_ids !== undefined) {
    // A context for this inbox alone stays its own when the inbox begins to have those for every inbox too.
    const listed = context_ids ?? (await onlyListed(tx, before));
    columns.context_ids = JSON.stringify([...new Set(listed)]);
    columns.every_context = context_ids === null ? 1 : 0;
  }
  if (allowlist_senders !== undefined) {
    const senders = normalizeAllowlist(allowlist_senders);
    refuseOverCap(app, user, "allowlist_entries", { wanted: senders.length });
    columns.allowlist_senders = JSON.stringify(senders);
  }
  return columns;
}

function checkedLabel(text: string): string {
  const label = oneLine(text);
  if (isLongerThan(label, MAX_LABEL_CHARS))
    throw invalid("body.label", "too_long", `The label must have at most ${MAX_LABEL_CHARS} characters.`);
  return label;
}

/** A checked instruction; null for one without words. */
function checkedInstruction(text: string): string | null {
  const instruction = text.trim();
  if (isLongerThan(instruction, MAX_INSTRUCTION_CHARS))
    throw invalid(
      "body.default_instruction",
      "too_long",
      `The instruction must have at most ${MAX_INSTRUCTION_CHARS} characters.`,
    );
  return instruction === "" ? null : instruction;
}

async function refuseNoToolServers(tx: Db, user: UserRow, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const rows = await tx
    .selectFrom("connections")
    .select("kind")
    .where("user_id", "=", user.id)
    .where("id", "in", ids)
    .execute();
  const path = "body.mcp_connection_ids";
  const other = rows.find(({ kind }) => kind !== "mcp");
  if (other)
    throw invalid(path, "no_tool_server", `A connection of the kind ${other.kind} is not to a tool server.`);
  if (rows.length < ids.length) throw invalid(path, "connection_not_found", "connection not found");
}

/** As it is stored. Everything without anything that acts unasked is what holds without a scope. */
async function checkedScope(
  tx: Db,
  user: UserRow,
  scope: NonNullable<InboxSettings["scope"]> | null,
): Promise<string | null> {
  if (scope === null) return null;
  const targets = scope.targets && [...new Set(scope.targets)];
  const autonomous = [...new Set(scope.autonomous)];
  if (targets === null && autonomous.length === 0) return null;
  const available = [...OWN_TARGETS, ...(await toolServerNames(tx, user.id)).keys()];
  const unknown = targets?.find((target) => targetNamed(available, target) === undefined);
  if (unknown !== undefined) {
    throw invalid(
      "body.scope.targets",
      "unknown_target",
      `"${unknown.slice(0, MAX_QUOTED_CHARS)}" is not a target. Available: ${available.join(", ")}.`,
    );
  }
  const names = new Set((targets ?? available).map((target) => targetNamed(available, target)));
  const outside = autonomous.find((target) => !names.has(targetNamed(available, target)));
  if (outside !== undefined)
    throw invalid(
      "body.scope.autonomous",
      "outside_targets",
      `"${outside.slice(0, MAX_QUOTED_CHARS)}" must also ${targets ? "stand in the list of what the inbox may use (`scope.targets`)" : "be a target"}.`,
    );
  return JSON.stringify({ targets, autonomous } satisfies Scope);
}
