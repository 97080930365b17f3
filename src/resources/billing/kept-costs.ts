import type { App } from "../../app.ts";
import { apart, type Db, isMissingParent, unlessCommitted } from "../../db/database.ts";
import { saveEachMinute } from "../../db/each-minute.ts";
import { prepared } from "../../db/prepared.ts";
import type { ModelCostRow } from "../../db/schema.ts";
import { messageOf } from "../../errors.ts";

export interface CostsAside {
  /** By month and budget, what requests that are under way may cost (see `budgets.ts`). */
  reserved: Map<string, number>;
  /** By month and budget, what is resolved when some of that is given back. */
  given_back: Map<string, PromiseWithResolvers<void>>;
  /** What requests have cost that is still to be written. */
  unsaved: Map<string, ModelCostRow>;
}

/**
 * Notes what a request has cost that no budget depends on. It is written within the minute: a request of its own for each would
 * cost as much as all else that is written of a run.
 */
export function noteCost({ costs }: Pick<App, "costs">, row: ModelCostRow): void {
  const { user_id, month, inbox_id, connection_id } = row;
  const key = JSON.stringify([user_id, month, inbox_id, connection_id]);
  const known = costs.unsaved.get(key)?.cost ?? 0;
  costs.unsaved.set(key, { ...row, cost: known + row.cost });
}

/** What was noted of an account for a month and is not written yet. */
export function unsavedCosts(
  { costs }: Pick<App, "costs">,
  of: Pick<ModelCostRow, "user_id" | "month">,
): ModelCostRow[] {
  return [...costs.unsaved.values()].filter(
    ({ user_id, month }) => user_id === of.user_id && month === of.month,
  );
}

/** Writes what was noted so far, before something depends on it. */
export async function saveCosts(app: Pick<App, "costs">, tx: Db): Promise<void> {
  const rows = [...app.costs.unsaved.values()];
  app.costs.unsaved.clear();
  unlessCommitted(tx, () => {
    for (const row of rows) noteCost(app, row);
  });
  for (const row of rows) {
    const fault = await apart(tx, () => addCost(tx, row));
    // An account that is gone by now has no month.
    if (fault !== undefined && !isMissingParent(fault)) throw fault;
  }
}

/** Writes every minute, and at the end, what was noted. */
export function keepCosts(app: App): AsyncDisposable {
  return saveEachMinute(async () => {
    if (app.costs.unsaved.size === 0) return;
    try {
      await app.write((tx) => saveCosts(app, tx));
    } catch (error) {
      app.log.warn({ err: messageOf(error) }, "what models have cost was not saved");
    }
  });
}

export const addCost = prepared((db, row: ModelCostRow) =>
  db
    .insertInto("model_costs")
    .values({
      user_id: row.user_id,
      month: row.month,
      inbox_id: row.inbox_id,
      connection_id: row.connection_id,
      cost: row.cost,
    })
    .onConflict((conflict) =>
      conflict
        .columns(["user_id", "month", "inbox_id", "connection_id"])
        .doUpdateSet((eb) => ({ cost: eb("model_costs.cost", "+", eb.ref("excluded.cost")) })),
    ),
);
