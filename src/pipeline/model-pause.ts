import type { Completion } from "../ai/llm.ts";

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
