import type { Completion } from "../ai/llm.ts";
import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import { type OpenConnection, openConnectionOf } from "../resources/connections/connections.ts";
import { secondsUntil } from "./model-pause.ts";

type Failure = Completion & { ok: false };

interface Fallbacks {
  user_id: string;
  /** The ids of those that have not been asked yet; shrinks. */
  untried: string[];
  signal: AbortSignal;
  /** Why the model that they stand in for has not answered. */
  failure: Failure;
}

interface Answered {
  connection: OpenConnection;
  answer: Completion & { ok: true };
  /** Those fallbacks that did not answer. */
  silent: OpenConnection[];
}

/** Asks the fallbacks that are left, in order, until one answers, and returns what it said; where none does, why. */
export async function askFallbacks(
  app: App,
  { user_id, untried, signal, failure }: Fallbacks,
  ask: (connection: OpenConnection) => Promise<Completion>,
): Promise<Answered | { answer: Failure }> {
  const silent: OpenConnection[] = [];
  const failures = [failure];
  while (!signal.aborted) {
    const id = untried.shift();
    if (id === undefined) break;
    const connection = await openFallback(app, { user_id, default_connection_id: id });
    if (connection === undefined) continue;
    const answer = await ask(connection);
    if (answer.ok) return { connection, answer, silent };
    silent.push(connection);
    failures.push(answer);
  }
  return { answer: inAll(failure, failures) };
}

/** The first of all failures, which may be waited for if any of them may: that model is asked again then. */
function inAll(first: Failure, all: Failure[]): Failure {
  const passing = all.filter(({ retryable }) => retryable);
  const [soonest = first] = passing.toSorted((a, b) => secondsUntil(a) - secondsUntil(b));
  if (soonest === first) return first;
  const { retryable, retry_after_seconds } = soonest;
  return { ...first, message: `${first.message} ${soonest.message}`, retryable, retry_after_seconds };
}

/** Opens a fallback; undefined where it cannot be used, which is for the log: the run fails as the first one did. */
async function openFallback(
  app: App,
  fallback: { user_id: string; default_connection_id: string },
): Promise<OpenConnection | undefined> {
  try {
    return await openConnectionOf(app, fallback);
  } catch (error) {
    app.log.warn({ err: messageOf(error) }, "the fallback connection cannot be used");
    return undefined;
  }
}
