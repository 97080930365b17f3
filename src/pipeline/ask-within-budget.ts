import { type Completion, type CompletionInput, complete } from "../ai/llm.ts";
import { type Bill, costOf, estimateOf, priceOf } from "../ai/prices.ts";
import type { SafeFetch } from "../net/guarded-fetch.ts";
import { proxyOption } from "../net/outgoing-proxy.ts";
import type { App } from "../app.ts";
import type { InboxRow } from "../db/schema.ts";
import { unlessAborted } from "../lib/deadline.ts";
import {
  budgetsFor,
  exceededWords,
  reserveCost,
  settleCost,
  type Spender,
} from "../resources/billing/budgets.ts";
import type { Whose } from "../resources/billing/storage.ts";
import type { OpenConnection } from "../resources/connections/connections.ts";

type Request = Omit<CompletionInput, "connection" | "fetch"> & {
  /** Who has caused it. */
  whose: Whose;
  /** Whether it waits for money that is merely set aside for others; not where another model can be asked at once. */
  waits: boolean;
};

/**
 * Asks a model as `complete` does, unless a budget is used up. What it may cost is set aside before, and what it has cost is noted
 * as soon as it has answered: whatever becomes of the run, it counts once.
 */
export async function askWithinBudget(
  app: App,
  inbox: InboxRow,
  connection: OpenConnection,
  { whose, waits, ...request }: Request,
): Promise<Completion> {
  const { trusted: _, label: __, fallback_connection_ids: ___, monthly_budget: ____, ...model } = connection;
  const spender = { user_id: inbox.user_id, inbox_id: inbox.id, connection_id: connection.id };
  const held = await setAside(app, { inbox, connection, spender }, { ...request, whose, waits });
  if (held && "exceeded" in held) {
    const message = await exceededWords(app, spender, held.exceeded);
    const retryable = held.given_back !== undefined;
    return { ok: false, code: "budget_used_up", message, retryable, retry_after_seconds: null };
  }
  let cost: number | null = 0;
  try {
    const answer = await complete({ ...request, connection: model, fetch: fetchOf(app, connection) });
    const known = costOf(app.config.costs, connection, answer.usage ?? undefined);
    // Where a provider says nothing of its tokens, what was set aside is the best that is known.
    cost = known ?? (answer.ok ? (held?.amount ?? null) : 0);
    return { ...answer, usage: usageOf(answer, known) };
  } finally {
    await settleCost(app, spender, { cost: cost ?? 0, reserve: held });
  }
}

/**
 * Sets aside what a request may cost; undefined where it is free, nobody knows its price, or there is no budget. Whoever waits does so
 * until what is set aside for others is given back, or its own time is over: nobody who waits has set anything aside.
 */
async function setAside(
  app: App,
  { inbox, connection, spender }: { inbox: InboxRow; connection: OpenConnection; spender: Spender },
  request: Request,
) {
  const price = priceOf(app.config.costs, connection);
  if (price === null || (price !== "said" && price.input + price.output === 0)) return undefined;
  const budgets = await budgetsFor(app.db, inbox, connection);
  if (budgets.length === 0) return undefined;
  const { whose, waits, signal } = request;
  const wanted = { budgets, amount: estimateOf(price, request), whose };
  for (;;) {
    const held = await reserveCost(app, spender, wanted);
    if (!("exceeded" in held) || held.given_back === undefined || !waits || signal.aborted) return held;
    await unlessAborted(held.given_back, signal).catch(() => undefined);
  }
}

function usageOf({ usage }: Completion, cost: number | null): Bill | null {
  if (!usage) return null;
  const { input_tokens, output_tokens } = usage;
  return { input_tokens, output_tokens, ...(cost === null ? {} : { cost }) };
}

/** Returns how a connection is reached: the operator's own may point anywhere. */
function fetchOf(app: App, { trusted }: Pick<OpenConnection, "trusted">): SafeFetch {
  return trusted ? operatorFetch : app.fetch;
}

/** Fetches from wherever the operator's own connection points; the signal is the only time limit, as in `app.fetch`. */
const operatorFetch: SafeFetch = (url, init) =>
  fetch(url, { ...init, ...proxyOption(new URL(url).hostname), timeout: false });
