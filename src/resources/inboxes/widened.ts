import { scopeOf, storedAllowlist, toolServersOf } from "../../db/inbox-columns.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow } from "../../db/schema.ts";
import { asCode } from "../../trust/shown/as-code.ts";
import type { Caller } from "../accounts/sessions.ts";
import { tellWhatStays } from "../accounts/what-stays.ts";
import { listedIn } from "../contexts/scope.ts";
import type { InboxSettings } from "./body-shapes.ts";

type Powers = Pick<
  InboxRow,
  | "allowlist_senders"
  | "scope"
  | "default_connection_id"
  | "mcp_connection_ids"
  | "context_ids"
  | "every_context"
  | "default_instruction"
  | "rules"
>;

interface Power {
  /** What is told of it: % is the inbox. */
  words: string;
  /** What it lets work, one by one: to take some away is not told. */
  of: (inbox: Powers) => string[];
}

/** What each setting of an inbox hands to others for as long as it stays; null: nothing. */
const POWERS: Record<keyof InboxSettings, Power | null> = {
  allowlist_senders: {
    words: "who may give orders to the inbox %",
    // Nobody where the list is damaged: whoever mends it lists people anew.
    of: (inbox) => storedAllowlist(inbox) ?? [],
  },
  scope: {
    words: "whose tools may change things in the inbox % without being named",
    of: (inbox) => scopeOf(inbox)?.autonomous ?? [],
  },
  default_connection_id: {
    words: "which model the inbox % asks",
    of: ({ default_connection_id: id }) => (id === null ? [] : [id]),
  },
  mcp_connection_ids: { words: "which tool servers the inbox % uses", of: toolServersOf },
  context_ids: {
    words: "which contexts the inbox % has",
    of: (inbox) => (inbox.every_context === 1 ? ["every"] : listedIn(inbox)),
  },
  default_instruction: {
    words: "the instruction of the inbox %",
    of: ({ default_instruction: text }) => (text === null ? [] : [text]),
  },
  // A rule that is taken away, or moved down, may have been what held others back.
  rules: { words: "the rules of the inbox %", of: ({ rules }) => [rules] },
  label: null,
  reply_enabled: null,
  inbound_policy: null,
  paused: null,
  retention_days: null,
  is_default: null,
};

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
  const wider = Object.values(POWERS).filter((power) => power !== null && isWider(power, { before, after }));
  const inbox = asCode(after.label);
  await tellWhatStays(
    app,
    tx,
    caller,
    wider.map((power) => (power?.words ?? "").replace("%", () => inbox)),
  );
}

function isWider({ of }: Power, { before, after }: { before: Powers; after: Powers }): boolean {
  const had = new Set(of(before));
  return of(after).some((entry) => !had.has(entry));
}
