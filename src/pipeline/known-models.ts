import type { App } from "../app.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";

/** What a model was found to do, or not to take, when an account asked it. */
export type ModelFact = "sees" | "blind" | "calls" | "no_tools";

/**
 * Whose finding it is. Accounts do not learn from each other's findings, although many may share the operator's
 * connection, because what a provider says depends on what it was sent.
 */
export interface Finder {
  account: string;
  connection: Pick<OpenConnection, "id" | "base_url" | "model">;
}

/** How long a finding is believed: providers change their models, and are wrong at times. */
const BELIEVED_SECONDS = 3_600;
/**
 * The most findings that are kept. One that is dropped for a new one costs one more request, which finds it out again.
 */
const MAX_FACTS = 5_000;

const findings = new WeakMap<App, Map<string, number>>();

export function isFound(app: App, finder: Finder, fact: ModelFact): boolean {
  return (findings.get(app)?.get(keyOf(finder, fact)) ?? 0) > app.steadyNow();
}

export function noteFact(app: App, finder: Finder, fact: ModelFact): void {
  const all = findings.get(app) ?? new Map<string, number>();
  findings.set(app, all);
  const key = keyOf(finder, fact);
  all.delete(key);
  all.set(key, app.steadyAfter(BELIEVED_SECONDS));
  const [oldest] = all.keys();
  if (all.size > MAX_FACTS && oldest !== undefined) all.delete(oldest);
}

function keyOf({ account, connection: { id, base_url, model } }: Finder, fact: ModelFact): string {
  return JSON.stringify([account, id, base_url, model, fact]);
}
