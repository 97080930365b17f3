import type { App } from "../app.ts";
import type { ApprovalRow } from "../db/schema.ts";
import type { ReadFor } from "../files/reader.ts";
import { waitingCount } from "../resources/approvals/view.ts";
import { hashOf } from "../resources/approvals/hash.ts";
import { isAskedFirst } from "../resources/connections/ask-first.ts";
import { type Target, targetsOf } from "../resources/connections/targets.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { type AskedCall, FILES_TARGET, type Objection } from "../trust/guard/guard.ts";
import type { Tool } from "../trust/guard/tool.ts";
import type { Answered } from "../trust/shown/changed-fields.ts";
import type { Run } from "./close.ts";
import { objectionToConsent } from "./objection.ts";
import { workOnText } from "./text-work.ts";

/** More letters about one message nobody reads with care. */
const MAX_HELD = 5;
/** Requests of one account that wait for an answer. */
const MAX_WAITING = 100;

/** A call that a run has not made, as the owner of its inbox is asked about it first. */
export interface HeldCall extends Pick<
  ApprovalRow,
  "id" | "connection_id" | "target" | "tool" | "hash" | "cause" | "tainted"
> {
  args: Record<string, unknown>;
  /** The arguments as people read them. */
  shown: string;
  /** What they would change of what the server has answered before, as people read it; null where nothing is known of that. */
  changes: string | null;
  /** The places in them that nobody has named. */
  unnamed: string[];
}

interface Wanted {
  asked: AskedCall;
  /** The arguments as they would be sent. */
  sent: Record<string, unknown>;
  cause: ApprovalRow["cause"];
  /** What the server of the tool has answered in this run so far. */
  answers: Answered[];
  signal: AbortSignal;
}

/**
 * Why a call is not just made: the owner is asked first, or the guard has an objection. Whoever is asked reads what would
 * be written, so that an order in it is no reason where nothing of others was read; null where it may be made.
 */
export async function whyStop(
  app: App,
  run: Run,
  { tool, tainted, objection }: Pick<AskedCall, "tool" | "tainted"> & { objection: Objection | null },
): Promise<{ cause: ApprovalRow["cause"]; objection: Objection | null } | null> {
  const is_shown = objection === null || (objection.unseen === true && !tainted);
  const cause = is_shown ? await whyAsk(app, run, tool) : null;
  if (cause !== null) return { cause, objection: null };
  return objection === null ? null : { cause: "boundary", objection };
}

/** Why the owner is asked before a call that nothing forbids; null where it may just be made. */
async function whyAsk(app: App, run: Run, tool: Tool): Promise<"marked" | "flag" | null> {
  if (tool.target === FILES_TARGET) return null;
  if (run.settings.ask && !tool.read_only) return "flag";
  const target = await targetOf(app, run, tool);
  return target !== undefined && isAskedFirst(target.asks_first, tool) ? "marked" : null;
}

/** Whether a consent could allow what the guard objects to: what an instruction could have allowed, and only changes. */
export function isLiftable({ lacks }: Objection, { read_only, target, titled }: Tool): boolean {
  if (lacks === null || read_only || target === FILES_TARGET) return false;
  // A page goes by an id, and whoever is asked about it could not see whose it is.
  return titled === undefined || lacks.place === null;
}

/**
 * Holds a call until the owner has consented to it. Returns a sentence on why it cannot be asked for: something is in it that no
 * consent lifts, or nobody could read before they say yes what it does.
 */
export async function holdCall(
  app: App,
  run: Run,
  { asked, sent, cause, answers, signal }: Wanted,
): Promise<HeldCall | string> {
  const { tool } = asked;
  const why = whyNever(run);
  if (why !== null) return why;
  const from = sourceOf(run.message);
  // The guard has looked at everything only where it had nothing against the call.
  const { objection, unnamed } =
    cause === "boundary" ? await objectionToConsent(app, asked, { from, signal }) : NOTHING_BESIDES;
  if (objection !== null) return objection.reason;
  const connection = (await targetOf(app, run, tool))?.connection;
  if (connection === undefined) return `@${tool.target} is not connected any more.`;
  const hash = hashOf(connection, tool, sent);
  const same = run.held.find((held) => held.hash === hash);
  if (same !== undefined) return same;
  const full = await whyNoMore(app, run);
  if (full !== null) return full;
  const shown = await workOnText(app, "shown", { args: sent, unnamed }, from);
  if (shown === undefined) return UNSHOWN.long;
  if ("problem" in shown) return UNSHOWN[shown.problem];
  const held: HeldCall = {
    id: app.newId(),
    connection_id: connection.id,
    target: tool.target,
    tool: tool.name,
    args: sent,
    hash,
    cause,
    tainted: asked.tainted ? 1 : 0,
    shown: shown.text,
    changes: await changesOf(app, { tool, args: sent, answers }, from),
    unnamed,
  };
  run.held.push(held);
  return held;
}

/** What a call would change of what was answered before. A text of others that takes too long is no reason not to ask. */
async function changesOf(
  app: App,
  { tool, args, answers }: { tool: Tool; args: Record<string, unknown>; answers: Answered[] },
  from: ReadFor,
): Promise<string | null> {
  if (tool.read_only) return null;
  return (await workOnText(app, "changes", { tool: tool.name, args, answers }, from)) ?? null;
}

const NOTHING_BESIDES = { objection: null, unnamed: [] };
const UNSHOWN = {
  long: "The owner cannot be asked about it: its arguments are longer, or more, than anybody reads before they say yes.",
  packed:
    "The owner cannot be asked about it: something in its arguments is encoded, and cannot be shown as words that anybody reads before they say yes. Give it as text.",
};

/** Whether it is said that a call cannot be asked for since nobody could read it. */
export function isUnshown(why: string): boolean {
  return Object.values(UNSHOWN).includes(why);
}

async function whyNoMore(app: App, { held, message }: Run): Promise<string | null> {
  if (held.length >= MAX_HELD) return `The owner is asked about ${MAX_HELD} calls of one message at most.`;
  const waiting = (await waitingCount(app.db, message.user_id, app.calmNow())) + held.length;
  return waiting < MAX_WAITING
    ? null
    : `${MAX_WAITING} requests wait for the owner's answer already: no more are made before some of them have one.`;
}

/** Why no call of a run can be asked for, whatever it is. */
function whyNever({ message, settings }: Run): string | null {
  if (!hasAuthority(message)) return "Nobody with authority has asked for it.";
  if (message.source === "test") return "A test asks nobody for consent.";
  return settings.private ? "With --private nothing is kept that the owner could be asked about." : null;
}

async function targetOf(app: App, { inbox }: Run, { target }: Tool): Promise<Target | undefined> {
  const { attached } = await targetsOf(app.db, inbox);
  return attached.find(({ name }) => name === target);
}
