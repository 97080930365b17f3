import { prepared } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";

/** What the end of a run writes on its message. */
export type Closing = Pick<
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
  | "cost"
  | "credits_charged"
  | "contexts"
  | "from_memory"
>;

export const closeMessage = prepared((db, row: Closing & Pick<MessageRow, "id" | "reply_status">) =>
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
      cost: row.cost,
      credits_charged: row.credits_charged,
      contexts: row.contexts,
      from_memory: row.from_memory,
      reply_status: row.reply_status,
    })
    .where("id", "=", row.id),
);
