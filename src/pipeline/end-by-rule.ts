import type { App } from "../app.ts";
import { releaseCredit, settleCredit } from "../resources/billing/ledger.ts";
import { finishJob } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { storedJson } from "../lib/stored-json.ts";
import type { LeftOutReason } from "../reasons.ts";
import { LEFT_OUT_BY_RULE } from "../resources/messages/forgotten.ts";
import { recordState } from "../resources/messages/events.ts";
import type { Run } from "./close.ts";
import { prepareForward } from "./forward.ts";
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
  { end, steps, asked, do: acts }: Ruled & { end: NonNullable<Ruled["end"]> },
): Promise<void> {
  const { message } = about;
  const drafts = [...steps];
  const forward = await prepareForward(app, { ...about, steps: drafts }, acts.forward_to);
  const { reason, error } = wordsOf(end);
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
  };
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    await tx.updateTable("messages").set(ended).where("id", "=", message.id).execute();
    await (charged ? settleCredit(app, tx, message) : releaseCredit(app, tx, message));
    await forward?.(tx);
    if (end.kind === "skip") await forgetContent(app, tx, message);
    await recordState(app, tx, { ...message, ...ended });
  });
  app.finished.notify(message.id);
  app.log.info(
    { reason, rule: end.rule, inbox: about.inbox.label, inbox_id: about.inbox.id },
    "message left out",
  );
}

function wordsOf({ kind, rule }: NonNullable<Ruled["end"]>): { reason: LeftOutReason; error: string } {
  return kind === "skip"
    ? { reason: LEFT_OUT_BY_RULE, error: `Your rule “${rule}” left it out.` }
    : {
        reason: "kept_by_rule",
        error: `Your rule “${rule}” kept it without having it worked on. “Work on it now” on its page has it done after all.`,
      };
}
