import type { App } from "../app.ts";
import type { Completion } from "../ai/llm.ts";
import type { MessageRow } from "../db/schema.ts";

type Failure = Completion & { ok: false };

const RETRY_SECONDS = 2;
const MAX_RETRY_SECONDS = 300;

/** How long a model is left alone that failed for the moment. */
export function secondsUntil({ retry_after_seconds }: Failure): number {
  return retry_after_seconds ?? RETRY_SECONDS;
}

/** Whether it is waited for at all. A provider that asks for a longer pause than a person waits for an answer has failed. */
export function mayWaitFor(answer: Failure): boolean {
  return answer.retryable && secondsUntil(answer) <= MAX_RETRY_SECONDS;
}

export interface Again {
  failure: Failure;
  /** After which it is asked again. */
  seconds: number;
}

/** Returns when the model is asked again; undefined where it has answered, has been asked often enough, or would fail again. */
export function againAfter(
  { config: { routing } }: Pick<App, "config">,
  { answer, failures }: { answer: Completion; failures: number },
  { source, schedule_id }: Pick<MessageRow, "source" | "schedule_id">,
): Again | undefined {
  if (answer.ok || !mayWaitFor(answer)) return undefined;
  // Nobody sits before a mail, and providers are mostly back within minutes; whoever calls waits, and can call again.
  const is_mailed = source === "email" || schedule_id !== null;
  const seconds = (is_mailed ? routing.retry : routing.retry.slice(0, 1))[failures];
  if (seconds === undefined) return undefined;
  return { failure: answer, seconds: Math.max(seconds, answer.retry_after_seconds ?? 0) };
}
