import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { enqueue, finishJob, type Job, rewriteJob } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { prepareLetter } from "../../mail/writing/letters.ts";
import type { NoticeKind } from "./account-mail.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";
import { storedJson } from "../../lib/stored-json.ts";

type Untold = JobPayloads["sum_up_notices"];

/** More that a key has changed in an hour is told as "and more". */
const MOST_NAMED = 100;

/** How long notices are collected for one mail. */
const COLLECTED_SECONDS = HOUR_SECONDS;

const SUBJECTS: Record<NoticeKind, string> = {
  key: "More API keys were made for your Mailwright account",
  export: "Your Mailwright account was downloaded more often",
  password: "The password of your Mailwright account was set more often",
  command: "An API key has changed your Mailwright account",
};

const DEEDS: Record<NoticeKind, (times: string) => string> = {
  key: (times) => `API keys were made for your account **${times} more**`,
  export: (times) => `All messages, files and settings of your account were downloaded **${times} more**`,
  password: (times) => `The password of your account was set **${times} more**`,
  command: (times) =>
    `An API key of yours has changed **${times}** what goes on working when the key is revoked`,
};

const TOLD = ", after those that you were told of one by one";
/** What stays although the key is gone. */
const STAYS =
  "Revoking the key takes none of it back: look through each of these, and undo what you do not want. An inbox shows its senders, tools, contexts, model and rules on [its page](%/app/inboxes).";

/** Counts what its owner gets no mail of its own about; within an hour one tells of all of it. */
export async function countUntold(app: App, tx: Db, untold: Omit<Untold, "count">, more = 1): Promise<void> {
  const dedupe_key = `sum_up_notices:${untold.about}:${untold.user_id}`;
  const run_at = app.after(COLLECTED_SECONDS);
  const work = { payload: { ...untold, count: more }, run_at, dedupe_key };
  if (await enqueue(app, tx, { kind: "sum_up_notices", ...work })) return;
  const jobs = tx.selectFrom("jobs").select(["id", "payload"]).where("dedupe_key", "=", dedupe_key);
  const { id, payload } = await jobs.executeTakeFirstOrThrow();
  const before = storedJson<Pick<Untold, "count" | "what">>(payload, { count: 0 });
  const what = [...new Set([...(before.what ?? []), ...(untold.what ?? [])])].slice(0, MOST_NAMED + 1);
  await rewriteJob(tx, { id, payload: JSON.stringify({ ...untold, what, count: before.count + more }) });
}

export async function sumUpNow(app: App, job: Job<"sum_up_notices">, signal: AbortSignal): Promise<void> {
  const { user_id, about, count } = job.payload;
  const owners = app.db.selectFrom("users").select("email").where("id", "=", user_id);
  const owner = await owners.where("deleted_at", "is", null).executeTakeFirst();
  const queue = owner && (await prepareLetter(app, letterOf(app, owner.email, job.payload)));
  await writeOutcome(app, signal, async (tx) => {
    const jobs = tx.selectFrom("jobs").select("payload").where("id", "=", job.id);
    const now = await jobs.executeTakeFirst();
    await finishJob(tx, job);
    await queue?.(tx);
    // What was counted since the letter was written is for the next one.
    const { count: counted, what = [] } =
      now === undefined ? job.payload : storedJson<Untold>(now.payload, job.payload);
    if (counted > count) await countUntold(app, tx, { user_id, about, what }, counted - count);
  });
}

function letterOf(app: App, to: string, { user_id, about, count, what = [] }: Untold) {
  const times = count === 1 ? "once" : `${count} times`;
  const words = [
    `${DEEDS[about](times)} within an hour${about === "command" ? "" : TOLD}${what.length === 0 ? "." : ":"}`,
    ...(what.length === 0 ? [] : [listOf(what)]),
    ...(about === "command" ? [STAYS.replace("%", app.base_url)] : []),
    `Your [settings](${app.base_url}/app/settings) show, under "What happened to your access", which key or client did it.`,
    "That was not you? Sign in with a code, set another password, make a new key and revoke those that you do not know, and tell the operator of your server.",
  ];
  return { user_id, to, subject: SUBJECTS[about], markdown: words.join("\n\n") };
}

function listOf(what: string[]): string {
  const named = what.slice(0, MOST_NAMED).map((one) => `- ${one}`);
  return [...named, ...(what.length > MOST_NAMED ? ["- and more"] : [])].join("\n");
}
