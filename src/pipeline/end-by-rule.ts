import type { App } from "../app.ts";
import { releaseCredit, settleCredit } from "../resources/billing/ledger.ts";
import { finishJob } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { storedJson } from "../lib/stored-json.ts";
import type { LeftOutReason } from "../reasons.ts";
import { LEFT_OUT_BY_RULE } from "../resources/messages/forgotten.ts";
import { recordState } from "../resources/messages/events.ts";
import type { Run } from "./close.ts";
import {
  type Forward,
  HAVE_IT_DONE,
  keptFor,
  leaveOutOnceForwarded,
  leftOutBy,
  prepareForward,
} from "./forward.ts";
import { forgetContent } from "./private.ts";
import type { Ruled } from "./rules.ts";
import { toSteps } from "./steps.ts";

type Ended = Pick<Run, "job" | "signal" | "message" | "inbox" | "owner_email" | "owner_verified">;

/**
 * Ends a message that a rule of its inbox leaves out, or keeps without working on it, in one transaction. It costs a credit only
 * if the model was asked about it.
 */
export async function endByRule(
  app: App,
  { job, signal, ...about }: Ended,
  { end, steps, asked, usage, do: acts }: Ruled & { end: NonNullable<Ruled["end"]> },
): Promise<void> {
  const { message } = about;
  const drafts = [...steps];
  const forward = await prepareForward(app, { ...about, steps: drafts }, acts.forward_to);
  const words = wordsOf(end, forward);
  const { reason, error } = words;
  const charged = asked && message.source !== "test";
  const ended = {
    state: "skipped" as const,
    reason,
    error,
    steps: JSON.stringify(toSteps(drafts)),
    completed: app.now(),
    duration_ms: app.nowMs() - message.accepted_ms,
    tags: JSON.stringify([...new Set([...storedJson<string[]>(message.tags, []), ...(acts.tags ?? [])])]),
    credits_charged: charged ? 1 : 0,
    ...usage,
  };
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    await tx.updateTable("messages").set(ended).where("id", "=", message.id).execute();
    if (end.kind === "skip" && forward?.is_on_its_way === true)
      await leaveOutOnceForwarded(tx, message, end.rule);
    await (charged ? settleCredit(app, tx, message) : releaseCredit(app, tx, message));
    await forward?.queue(tx);
    if (words.reason === LEFT_OUT_BY_RULE) await forgetContent(app, tx, message);
    await recordState(app, tx, { ...message, ...ended });
  });
  app.finished.notify(message.id);
  app.log.info(
    { reason, rule: end.rule, inbox: about.inbox.label, inbox_id: about.inbox.id },
    "message left out",
  );
}

/** What is to be forwarded first is kept until that is done. */
function wordsOf(
  { kind, rule }: NonNullable<Ruled["end"]>,
  forward: Forward | undefined,
): { reason: LeftOutReason; error: string } {
  if (kind === "keep")
    return {
      reason: "kept_by_rule",
      error: `Your rule “${rule}” kept it without having it worked on. ${HAVE_IT_DONE}`,
    };
  if (forward === undefined) return { reason: LEFT_OUT_BY_RULE, error: leftOutBy(rule) };
  return { reason: "kept_by_rule", error: keptFor(rule, forward.is_on_its_way) };
}
