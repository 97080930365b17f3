import type { App } from "../app.ts";
import { releaseCredit, RUN_CREDITS, settleCredit } from "../billing/ledger.ts";
import { noteTurn } from "../conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { finishJob, type Job } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { storeFiles } from "../messages/accept.ts";
import type { Command } from "./command.ts";
import type { RunInput } from "./input.ts";
import type { RunSettings } from "./settings.ts";
import { type StepDraft, toSteps } from "./steps.ts";
import { mayAnswer, type PreparedReply, prepareReply } from "./reply.ts";

/** How a run ended, before it is written down. */
export type Ending =
  | {
      state: "done";
      result: string;
      model: string;
      usage: { input_tokens: number; output_tokens: number } | null;
      /** Nothing was done that costs a credit. */
      free?: true;
    }
  | { state: "failed"; reason: string; error: string };

export interface Run {
  job: Job;
  signal: AbortSignal;
  message: MessageRow;
  inbox: InboxRow;
  input: RunInput;
  command: Command;
  settings: RunSettings;
  steps: StepDraft[];
}

/** Ends a message in one transaction: its result, its credit, its files, its answer and its job. */
export async function closeRun(app: App, run: Run, ending: Ending): Promise<void> {
  const { message, input } = run;
  const reply = await answerTo(app, run, ending);
  const next = await writeOutcome(app, run.signal, async (tx) => {
    await finishJob(tx, run.job);
    const reply_status = reply ? await reply.queue(tx) : "none";
    await closeMessage(tx, { ...closingColumns(app, run, ending), id: message.id, reply_status });
    if (message.raw_mail_id !== null)
      await storeFiles(app, tx, { message_id: message.id, direction: "in", files: input.files });
    await (ending.state === "done" ? settleTurn(app, tx, message, ending) : releaseCredit(app, tx, message));
    return app.worker?.claimNext(tx, run.job);
  });
  if (next) app.worker?.follow(next);
  app.finished.notify(message.id);
  if (ending.state === "done") app.log.info({ message_id: message.id }, "message done");
  else app.log.warn({ message_id: message.id, reason: ending.reason }, "message failed");
}

async function settleTurn(
  app: App,
  tx: Db,
  message: MessageRow,
  { result, free }: Ending & { state: "done" },
): Promise<void> {
  await (free ? releaseCredit(app, tx, message) : settleCredit(app, tx, message));
  const { conversation_id, sender } = message;
  await noteTurn(tx, { conversation_id, sender, reply: result, now: app.now() });
}

/** The answer to mail back: the result, or a notice of the failure for a person who could act on it. */
async function answerTo(app: App, run: Run, ending: Ending): Promise<PreparedReply | undefined> {
  const { message, inbox, input } = run;
  if (!run.settings.reply || !mayAnswer(message, inbox) || !input.headers) return undefined;
  const answered = { message, inbox, headers: input.headers };
  if (ending.state === "done") {
    const warnings = run.steps.filter(({ type }) => type === "warning").map(({ output }) => asCode(output));
    const markdown = [ending.result, ...warnings].join("\n\n");
    return prepareReply(app, answered, { kind: "reply", markdown });
  }
  if (message.authority !== "owner" && message.authority !== "listed") return undefined;
  const markdown = `Your mail could not be worked on.\n\n${ending.error}\n\nNothing was charged.`;
  return prepareReply(app, answered, { kind: "notice", markdown });
}

/** Warnings repeat file names and the like, which others chose: as code, nothing in them is a link or a format. */
function asCode(warning: string): string {
  return `\`${warning.replaceAll("`", "'")}\``;
}

type Closing = Pick<
  MessageRow,
  | "state"
  | "instruction"
  | "command"
  | "steps"
  | "completed"
  | "duration_ms"
  | "error"
  | "reason"
  | "result"
  | "model"
  | "input_tokens"
  | "output_tokens"
  | "credits_charged"
>;

const closeMessage = prepared((db, row: Closing & Pick<MessageRow, "id" | "reply_status">) =>
  db
    .updateTable("messages")
    .set({
      state: row.state,
      instruction: row.instruction,
      command: row.command,
      steps: row.steps,
      completed: row.completed,
      duration_ms: row.duration_ms,
      error: row.error,
      reason: row.reason,
      result: row.result,
      model: row.model,
      input_tokens: row.input_tokens,
      output_tokens: row.output_tokens,
      credits_charged: row.credits_charged,
      reply_status: row.reply_status,
    })
    .where("id", "=", row.id),
);

const NOTHING_YET = {
  error: null,
  reason: null,
  result: "",
  model: null,
  input_tokens: null,
  output_tokens: null,
  credits_charged: 0,
};

function closingColumns(app: App, run: Run, ending: Ending): Closing {
  const columns = {
    ...NOTHING_YET,
    state: ending.state,
    instruction: run.command.raw,
    command: JSON.stringify(run.command),
    steps: JSON.stringify(toSteps(run.steps)),
    completed: app.now(),
    duration_ms: app.nowMs() - run.message.accepted_ms,
  };
  if (ending.state === "failed") return { ...columns, error: ending.error, reason: ending.reason };
  const credits_charged = ending.free || run.message.source === "test" ? 0 : RUN_CREDITS;
  return { ...columns, ...ending.usage, result: ending.result, model: ending.model, credits_charged };
}
