import { scopeOf, storedAllowlist, toolServersOf } from "../../db/inbox-columns.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow } from "../../db/schema.ts";
import { INTEGRATION_KINDS } from "../../config/integrations.ts";
import type { Guard, Powers as ToolPowers } from "../../trust/guard/guard.ts";
import { MEMORY_TARGET } from "../../trust/target-names.ts";
import { asCode } from "../../trust/shown/as-code.ts";
import type { Caller } from "../accounts/sessions.ts";
import { tellWhatStays } from "../accounts/what-stays.ts";
import { listedIn } from "../contexts/scope.ts";
import type { InboxSettings } from "./body-shapes.ts";
import { policyOf } from "./settings.ts";

export type Powers = Pick<
  InboxRow,
  | "allowlist_senders"
  | "scope"
  | "default_connection_id"
  | "mcp_connection_ids"
  | "context_ids"
  | "every_context"
  | "default_instruction"
  | "rules"
  | "reply_enabled"
  | "inbound_policy"
  | "paused"
  | "retention_days"
  | "monthly_budget"
> & { is_default: boolean };

interface Power {
  /** What is told of it: % is the inbox. */
  words: string;
  /** What it lets work, one by one: to take some away is not told. `targets`: all that either scope names, and one that none does. */
  of: (inbox: Powers, about: { guard: Guard; targets: string[] }) => string[];
}

/** What each setting of an inbox hands to others for as long as it stays, or why nobody is told of a change of it. */
const POWERS: Record<keyof InboxSettings, Power[] | { untold: string }> = {
  allowlist_senders: [
    {
      words: "who may give orders to the inbox %",
      // Nobody where the list is damaged: whoever mends it lists people anew.
      of: (inbox) => storedAllowlist(inbox) ?? [],
    },
    {
      words: "that anybody may write to the inbox %",
      of: (inbox) => (storedAllowlist(inbox)?.length === 0 ? ["anybody"] : []),
    },
  ],
  scope: [
    {
      words: "whose tools may change things in the inbox % without being named",
      of: toolsThat(({ mayWrite }, target) => mayWrite(target)),
    },
    {
      words: "whose tools the inbox % may use",
      of: toolsThat(({ mayUse }, target) => mayUse(target)),
    },
  ],
  default_connection_id: [
    {
      words: "which model the inbox % asks",
      of: ({ default_connection_id: id }) => (id === null ? [] : [id]),
    },
  ],
  mcp_connection_ids: [{ words: "which tool servers the inbox % uses", of: toolServersOf }],
  context_ids: [
    {
      words: "which contexts the inbox % has",
      of: (inbox) => (inbox.every_context === 1 ? ["every"] : listedIn(inbox)),
    },
  ],
  default_instruction: [
    {
      words: "the instruction of the inbox %",
      of: ({ default_instruction: text }) => (text === null ? [] : [text]),
    },
  ],
  // A rule that is taken away, or moved down, may have been what held others back.
  rules: [{ words: "the rules of the inbox %", of: ({ rules }) => [rules] }],
  inbound_policy: [
    {
      words: "which mail of others the inbox % works on and answers",
      of: (inbox) =>
        Object.entries(policyOf(inbox)).flatMap(([name, on]) => ((on as unknown) === false ? [] : [name])),
    },
  ],
  reply_enabled: [
    {
      words: "that the inbox % answers by mail",
      of: ({ reply_enabled }) => (reply_enabled === 1 ? ["answers"] : []),
    },
  ],
  paused: [{ words: "that the inbox % goes on", of: ({ paused }) => (paused === null ? ["works"] : []) }],
  // A shorter time deletes what is there, a longer one keeps what should be gone.
  retention_days: [
    { words: "how long the inbox % keeps what it gets", of: ({ retention_days: days }) => [String(days)] },
  ],
  monthly_budget: [
    {
      words: "what the models of the inbox % may cost in a month",
      of: ({ monthly_budget: budget }) => [String(budget)],
    },
  ],
  is_default: [
    {
      words: "that calls which name no inbox go to the inbox %",
      of: ({ is_default }) => (is_default ? ["default"] : []),
    },
  ],
  label: { untold: "It is a name for people, by which nothing is allowed." },
};

/** A target that no scope names: what may use it may use all, also those to come. */
const ANY_OTHER = "mcp:any other";

/** By the guard's own word, as for a run, what the household may do with the tools of which targets. */
function toolsThat(may: (powers: ToolPowers, target: string) => boolean): Power["of"] {
  return (inbox, { guard, targets }) =>
    (["owner", "listed"] as const).flatMap((authority) => {
      const asked = { authority, scope: scopeOf(inbox), tools: true, allow_destructive: true };
      const unnamed = guard.powersOf({ ...asked, target: null });
      const named = guard.powersOf({ ...asked, target: MEMORY_TARGET });
      return targets
        .filter((target) => may(target === MEMORY_TARGET ? named : unnamed, target))
        .map((target) => `${authority} ${target}`);
    });
}

/**
 * Has the owner mailed that a key lets an inbox do more, or otherwise. Whoever had a key for a minute could else stay for good, as
 * a listed sender or by a rule.
 */
export async function tellIfWidened(
  app: App,
  tx: Db,
  caller: Caller,
  { before, after }: { before: Powers; after: Powers & Pick<InboxRow, "label"> },
): Promise<void> {
  const scopes = [before, after].map(scopeOf);
  const named = scopes.flatMap((scope) => (scope?.targets ?? []).concat(scope?.autonomous ?? []));
  const about = {
    guard: app.guard,
    targets: [...new Set([...named, ...INTEGRATION_KINDS, MEMORY_TARGET, ANY_OTHER])],
  };
  const isWider = ({ of }: Power): boolean => {
    const had = new Set(of(before, about));
    return of(after, about).some((entry) => !had.has(entry));
  };
  const wider = Object.values(POWERS).flatMap((powers) => ("untold" in powers ? [] : powers.filter(isWider)));
  const inbox = asCode(after.label);
  const words = wider.map((power) => power.words.replace("%", () => inbox));
  await tellWhatStays(app, tx, caller, words);
}
