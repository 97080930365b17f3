import { scopeOf, storedAllowlist, toolServersOf } from "../../db/inbox-columns.ts";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { refuseRaised } from "../billing/budget-column.ts";
import { planLimits, refuseBeyondPlan, refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import { rankOf } from "../domains/domains.ts";
import { AppError, invalid } from "../../errors.ts";
import {
  addressOf,
  chosenLocalPart,
  freeLocalPart,
  prefixOf,
  refuseTaken,
  retireAddress,
} from "./addresses.ts";
import { listedIn } from "../contexts/scope.ts";
import { defaultInboxId, setDefault } from "./default-inbox.ts";
import { lookAtWaitingLater, resumeLater } from "./pause.ts";
import { hasRoom, refuseResting } from "./room.ts";
import type { InboxPatch, NewInbox } from "./body-shapes.ts";
import { asAmount } from "../../lib/money.ts";
import { sha256 } from "../../lib/sha256.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { ruleForLists } from "./rules/for-lists.ts";
import { type Rule, rulesOf, storedRules, viewRule } from "./rules/rules.ts";
import { tellIfWidened } from "./widened.ts";
import { columnsOf, NEW_INBOX, policyOf } from "./settings.ts";

export type InboxView = ReturnType<typeof viewInbox>;

const DEFAULT_LABEL = "Inbox";

export async function listInboxes(app: App, user: UserRow): Promise<InboxView[]> {
  const rows = await app.db
    .selectFrom("inboxes")
    .selectAll()
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  const room = planLimits(app.config, user.plan).inboxes;
  const default_id = await defaultInboxId(app.db, user);
  return rows.map((row, index) =>
    viewInbox(app, row, { enabled: index < room, is_default: row.id === default_id }),
  );
}

export async function readInbox(app: App, user: UserRow, id: string): Promise<InboxView> {
  return inboxView(app, app.db, user, await ownInbox(app.db, user, id));
}

export async function createInbox(app: App, caller: Caller, input: NewInbox): Promise<InboxView> {
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "inbox_created");
    const made = await addInbox(app, tx, caller.user, input);
    const after = await ownInbox(tx, caller.user, made.id);
    const is_default = input.is_default === true;
    await tellIfWidened(app, tx, caller, {
      before: { ...NEW_INBOX, is_default: false },
      after: { ...after, is_default },
    });
    return made;
  });
}

/** As `createInbox`, in the transaction of the caller. */
export async function addInbox(app: App, tx: Db, user: UserRow, input: NewInbox): Promise<InboxView> {
  const { domain_id = null, prefix: wanted, local_part: chosen, ...settings } = input;
  refuseOverCap(app, user, "inboxes", { wanted: (await countInboxes(tx, user)) + 1 });
  const domain = domain_id === null ? app.config.smtp.domain : await openDomain(app, tx, user, domain_id);
  const columns = await columnsOf(app, tx, { user, settings, before: NEW_INBOX });
  const address =
    chosen === undefined
      ? await tokenAddress(tx, { prefix: prefixOf(wanted ?? settings.label ?? ""), domain })
      : await chosenAddress(app, tx, { chosen, domain, domain_id });
  const row: InboxRow = {
    ...NEW_INBOX,
    id: app.newId(),
    user_id: user.id,
    ...address,
    domain,
    domain_id,
    deleted_at: null,
    rotations: 0,
    created: app.now(),
    updated: app.now(),
    ...columns,
    label: columns.label || DEFAULT_LABEL,
  };
  await tx.insertInto("inboxes").values(row).execute();
  await setDefault(tx, user, { id: row.id, is_default: settings.is_default });
  return inboxView(app, tx, user, row);
}

type AddressColumns = Pick<InboxRow, "local_part" | "prefix" | "named">;

async function tokenAddress(tx: Db, of: Pick<InboxRow, "prefix" | "domain">): Promise<AddressColumns> {
  return { prefix: of.prefix, local_part: await freeLocalPart(tx, of), named: 0 };
}

/**
 * The chosen address of an inbox. Anybody can guess one, so only a domain of the account's own may have it, unless
 * the operator allows it at the service's.
 */
async function chosenAddress(
  app: App,
  tx: Db,
  { chosen, domain, domain_id }: { chosen: string; domain: string; domain_id: string | null },
): Promise<AddressColumns> {
  const local_part = chosenLocalPart(chosen);
  if (domain_id === null && app.config.inboxes.chosen_addresses !== "everywhere")
    throw invalid(
      "body.local_part",
      "not_on_this_domain",
      `At ${domain} every address has a random part. Choose a domain of your own (\`domain_id\`), or ask the operator for inboxes.chosen_addresses.`,
    );
  await refuseTaken(tx, { local_part, domain });
  return { local_part, prefix: prefixOf(local_part), named: 1 };
}

/** Changes an inbox as RFC 7396 has it: absent members stay as they are, `null` clears those that may be empty. */
export async function patchInbox(
  app: App,
  caller: Caller,
  { id, settings: { rules_version, ...settings } }: { id: string; settings: InboxPatch },
): Promise<InboxView> {
  const { user } = caller;
  return app.write(async (tx) => {
    const row = await ownInbox(tx, user, id);
    if (Object.keys(settings).length === 0) return inboxView(app, tx, user, row);
    await noteChange(app, tx, caller, "inbox_changed");
    if (rules_version !== undefined && rules_version !== versionOf(row)) throw rulesChanged();
    await refuseResting(app, tx, user, row);
    const columns = await columnsOf(app, tx, { user, settings, before: row });
    const changed = { ...row, ...columns, updated: app.now() };
    refuseRaised(caller, row, changed);
    await tx.updateTable("inboxes").set(changed).where("id", "=", row.id).execute();
    const was_default = (await defaultInboxId(tx, user)) === row.id;
    const is_default = was_default || settings.is_default === true;
    await tellIfWidened(app, tx, caller, {
      before: { ...row, is_default: was_default },
      after: { ...changed, is_default },
    });
    if (row.paused !== null && changed.paused === null) await resumeLater(app, tx, row.id);
    if (changed.rules !== row.rules) await lookAtWaitingLater(app, tx, row.id);
    await setDefault(tx, user, { id, is_default: settings.is_default });
    return inboxView(app, tx, user, changed);
  });
}

/** The name of the rules of an inbox as they are now. */
function versionOf({ rules }: InboxRow): string {
  return sha256(rules, "hex").slice(0, VERSION_CHARS);
}

const VERSION_CHARS = 16;

function rulesChanged(): AppError {
  return new AppError("conflict", "The rules of this inbox have been changed since you read them.", {
    fix: "Read them again (reload the page), and make your change to what is there now.",
  });
}

/**
 * Replaces the address of an inbox by a new one with the same readable part; mail to the old one is refused from now on.
 * A chosen address becomes the readable part of an address with a token.
 */
export async function rotateInbox(app: App, caller: Caller, id: string): Promise<InboxView> {
  const { user } = caller;
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "inbox_rotated");
    const row = await ownInbox(tx, user, id);
    const local_part = await freeLocalPart(tx, row);
    // A reply address of before the change no longer continues its thread.
    const changed = { local_part, named: 0, rotations: row.rotations + 1, updated: app.now() };
    await retireAddress(app, tx, addressOf(row));
    await keepFromStrangers(tx, row);
    await tx.updateTable("inboxes").set(changed).where("id", "=", row.id).execute();
    return inboxView(app, tx, user, { ...row, ...changed });
  });
}

/** Withholds the answers to strangers whose mail still waits or may be tried again: they would tell the new address. */
async function keepFromStrangers(tx: Db, inbox: InboxRow): Promise<void> {
  await tx
    .updateTable("messages")
    .set({ no_reply_reason: "address_rotated" })
    .where("user_id", "=", inbox.user_id)
    .where(NOT_DONE)
    .where("state", "in", ["received", "failed"])
    .where("inbox_id", "=", inbox.id)
    .where("authority", "in", ["stranger", "unauthenticated"])
    .where("no_reply_reason", "is", null)
    .execute();
}

/** An inbox of any account: for work that was accepted for it, where no user asks. */
export const inboxById = remembered((db, key: { id: string }) =>
  db.selectFrom("inboxes").selectAll().where("id", "=", key.id).where("deleted_at", "is", null),
);

/** The user's own inbox, or `not_found`, whether it is unknown or somebody else's. */
export async function ownInbox(db: Db, user: UserRow, id: string): Promise<InboxRow> {
  const [row] = await inboxOfUser(db, { id, user_id: user.id });
  if (!row) throw new AppError("not_found", "There is no such inbox.");
  return row;
}

const inboxOfUser = remembered((db, key: { id: string; user_id: string }) =>
  db
    .selectFrom("inboxes")
    .selectAll()
    .where("id", "=", key.id)
    .where("user_id", "=", key.user_id)
    .where("deleted_at", "is", null),
);

/** The view of an inbox, which depends on the others of the account. */
export async function inboxView(app: App, db: Db, user: UserRow, row: InboxRow): Promise<InboxView> {
  return viewInbox(app, row, {
    enabled: await hasRoom(app, db, user, row),
    is_default: (await defaultInboxId(db, user)) === row.id,
  });
}

/** By setting, what a damaged disk does to an inbox, and the mend. */
const DAMAGED = {
  list: "Who may write to this inbox cannot be read any more: the database is damaged there. Write the list under “Who may write” anew: until then only your own mail is taken, and that of all others is put off.",
  rules:
    "The rules of this inbox cannot be read any more: the database is damaged there. Write them anew: until then all that comes is kept and waits.",
  scope:
    "What this inbox may use cannot be read any more: the database is damaged there. Choose it under “Tools” anew: until then it uses no tool.",
  servers:
    "Which tool servers this inbox uses cannot be read any more: the database is damaged there. Choose them under “Tools” anew: until then it uses none.",
};

const NO_MODEL =
  "This inbox has no model, so nothing that comes to it is worked on. Choose one on its page, under “Settings”.";

function unaskedWords(rule: Rule | undefined): string | false {
  if (rule === undefined) return false;
  return `The rule “${rule.name}” looks for mail of lists, and this inbox leaves such mail out before any rule is asked. Turn on “Work on newsletters and list mail” on its page, under “Who may write”, or take the rule out.`;
}

function isRouted(app: App, { default_connection_id }: InboxRow): boolean {
  return default_connection_id !== null || app.config.llm.kind !== "";
}

function problemOf(app: App, row: InboxRow): string | null {
  const found = [
    storedAllowlist(row) === null && DAMAGED.list,
    storedRules(row) === null && DAMAGED.rules,
    row.scope !== null && storedJson<unknown>(row.scope, null) === null && DAMAGED.scope,
    !Array.isArray(storedJson<unknown>(row.mcp_connection_ids, null)) && DAMAGED.servers,
    !isRouted(app, row) && NO_MODEL,
    !policyOf(row).process_bulk && unaskedWords(ruleForLists(rulesOf(row))),
  ].filter((words) => words !== false);
  return found.length === 0 ? null : found.join(" ");
}

/** `enabled`: whether the plan has room for it. */
function viewInbox(
  app: App,
  row: InboxRow,
  { enabled, is_default }: { enabled: boolean; is_default: boolean },
) {
  return {
    id: row.id,
    label: row.label,
    address: addressOf(row),
    local_part: row.local_part,
    prefix: row.prefix,
    domain: row.domain,
    domain_id: row.domain_id,
    default_connection_id: row.default_connection_id,
    mcp_connection_ids: toolServersOf(row),
    context_ids: row.every_context === 1 ? null : listedIn(row),
    reply_enabled: row.reply_enabled === 1,
    allowlist_senders: storedAllowlist(row) ?? [],
    problem: problemOf(app, row),
    scope: scopeOf(row),
    inbound_policy: policyOf(row),
    retention_days: row.retention_days,
    paused: row.paused,
    default_instruction: row.default_instruction,
    monthly_budget: asAmount(row.monthly_budget),
    rules: rulesOf(row).map(viewRule),
    rules_version: versionOf(row),
    enabled,
    is_default,
    routed: isRouted(app, row),
    created: row.created,
    updated: row.updated,
  };
}

async function countInboxes(tx: Db, user: UserRow): Promise<number> {
  const { count } = await tx
    .selectFrom("inboxes")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .executeTakeFirstOrThrow();
  return count;
}

/** The domain of a new inbox. Throws for a domain beyond the plan, which only keeps the inboxes that it has. */
async function openDomain(app: App, tx: Db, user: UserRow, domain_id: string): Promise<string> {
  const row = await tx
    .selectFrom("custom_domains")
    .select(["domain", "status"])
    .where("id", "=", domain_id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw invalid("body.domain_id", "domain_not_found", "custom domain not found");
  if (row.status !== "active")
    throw invalid(
      "body.domain_id",
      "domain_not_active",
      `${row.domain} is not active yet: publish its DNS records, then have them looked at on its page (\`POST /custom-domains/{domain_id}/verify\`).`,
    );
  const rank = await rankOf(tx, { id: domain_id, user_id: user.id });
  refuseBeyondPlan(app, user, "custom_domains", rank);
  return row.domain;
}
