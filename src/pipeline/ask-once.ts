import type { Completion, CompletionInput } from "../ai/llm.ts";
import type { App } from "../app.ts";
import type { InboxRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { deadline } from "../lib/deadline.ts";
import { type OpenConnection, openConnectionOf } from "../resources/connections/connections.ts";
import type { Whose } from "../resources/billing/storage.ts";
import { noteUse } from "../resources/connections/note-use.ts";
import { askWithinBudget } from "./ask-within-budget.ts";

/** A question beside the work of a run, which is answered without tools. */
export interface Question {
  system: string;
  user: string;
  brief: NonNullable<CompletionInput["brief"]>;
  within_ms: number;
}

interface Asked {
  inbox: InboxRow;
  connection: OpenConnection;
  whose: Whose;
  /** As in `askWithinBudget`. */
  waits: boolean;
}

/** Returns the connection of an inbox, or why it cannot be asked anything. */
export async function connectionToAsk(
  app: App,
  inbox: InboxRow,
): Promise<OpenConnection | { problem: string }> {
  try {
    return (await openConnectionOf(app, inbox)) ?? { problem: "the inbox has no model." };
  } catch (error) {
    if (error instanceof AppError) return { problem: error.message };
    throw error;
  }
}

/** Asks a model one question; what is wrong with it is part of the answer. */
export async function askOnce(
  app: App,
  { inbox, connection, ...spending }: Asked,
  { system, user, brief, within_ms }: Question,
  signal: AbortSignal,
): Promise<Completion> {
  using cap = deadline(signal, within_ms);
  // Waited for here, as the time ends with this function.
  const answer = await askWithinBudget(app, inbox, connection, {
    messages: [
      { role: "system", content: system },
      { role: "user", content: user },
    ],
    tools: [],
    signal: cap.signal,
    brief,
    ...spending,
  });
  await noteUse(app, { user_id: inbox.user_id, connection, answer });
  return answer;
}
