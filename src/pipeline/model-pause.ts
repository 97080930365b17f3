import type { App } from "../app.ts";
import type { Completion } from "../ai/llm.ts";
import type { MessageRow } from "../db/schema.ts";

type Failure = Completion & { ok: false };

/** The work that a model is asked for. */
type Work = Pick<MessageRow, "source" | "schedule_id">;
type Limits = Pick<App, "config">;

const RETRY_SECONDS = 2;
/** A provider that asks for a longer pause than a person waits for an answer has failed. */
const MAX_RETRY_SECONDS = 300;

/** How long a model is left alone that failed for the moment. */
export function secondsUntil({ retry_after_seconds }: Failure): number {
  return retry_after_seconds ?? RETRY_SECONDS;
}

/** Whether it is waited for at all. A mail waits for as long as its tries take, as nobody sits before it. */
export function mayWaitFor({ config: { routing } }: Limits, answer: Failure, work: Work): boolean {
  const reach = isMailed(work) ? routing.retry.reduce((sum, seconds) => sum + seconds, 0) : 0;
  return answer.retryable && secondsUntil(answer) <= Math.max(reach, MAX_RETRY_SECONDS);
}

function isMailed({ source, schedule_id }: Work): boolean {
  return source === "email" || schedule_id !== null;
}

/**
 * How often it is asked once more, at most. Providers are mostly back within minutes; whoever calls waits, and can call again. A
 * model that takes all of a run's time may hang for the moment, or be too slow for good.
 */
function triesAfter(work: Work, out_of_time: boolean): number {
  if (isMailed(work)) return out_of_time ? 2 : Number.POSITIVE_INFINITY;
  return out_of_time ? 0 : 1;
}

export interface Again {
  failure: Failure;
  /** After which it is asked again. */
  seconds: number;
}

/** What came of asking a model, `failures` times before included. */
interface Tried {
  answer: Completion;
  failures: number;
  /** Whether the run has used up its time. */
  out_of_time: boolean;
}

/** Returns when the model is asked again; undefined where it has answered, has been asked often enough, or would fail again. */
export function againAfter(
  app: Limits,
  { answer, failures, out_of_time }: Tried,
  work: Work,
): Again | undefined {
  if (answer.ok || !mayWaitFor(app, answer, work)) return undefined;
  const { retry } = app.config.routing;
  const seconds = retry.slice(0, triesAfter(work, out_of_time))[failures];
  if (seconds === undefined) return undefined;
  return { failure: answer, seconds: Math.max(seconds, answer.retry_after_seconds ?? 0) };
}
