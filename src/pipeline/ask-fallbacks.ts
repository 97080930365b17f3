import type { Completion } from "../ai/llm.ts";
import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import { type OpenConnection, openConnectionOf } from "../resources/connections/connections.ts";

interface Fallbacks {
  user_id: string;
  /** The ids of those that have not been asked yet; shrinks. */
  untried: string[];
  signal: AbortSignal;
}

/**
 * Asks the fallbacks that are left, in order, until one answers, and returns what it said; undefined where none does.
 * `silent` are the models of those that did not.
 */
export async function askFallbacks(
  app: App,
  { user_id, untried, signal }: Fallbacks,
  ask: (connection: OpenConnection) => Promise<Completion>,
): Promise<{ connection: OpenConnection; answer: Completion & { ok: true }; silent: string[] } | undefined> {
  const silent: string[] = [];
  while (!signal.aborted) {
    const id = untried.shift();
    if (id === undefined) return undefined;
    const connection = await openFallback(app, { user_id, default_connection_id: id });
    if (connection === undefined) continue;
    const answer = await ask(connection);
    if (answer.ok) return { connection, answer, silent };
    silent.push(connection.model);
  }
  return undefined;
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
