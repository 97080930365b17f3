import type { ReplayRow } from "../../db/schema.ts";
import { asAmount } from "../../lib/money.ts";
import { storedJson } from "../../lib/stored-json.ts";
import type { UsedContext } from "../contexts/shapes.ts";
import { DAMAGED, usageOf } from "../messages/view.ts";

const STATUS = { received: "processing", done: "done", failed: "failed" } as const;

/** What a replay is to do otherwise. */
export interface Asked {
  connection_id?: string;
  model?: string;
  instruction?: string;
  contexts?: "then" | "now";
  context_versions?: Record<string, number>;
}

export function askedOf({ asked }: Pick<ReplayRow, "asked">): Asked {
  return storedJson<Asked>(asked, {});
}

/** A replay without what came of it in words, which may be long. */
export function viewReplayCard(row: Omit<ReplayRow, "result" | "steps" | "contexts">) {
  const asked = askedOf(row);
  return {
    id: row.id,
    message_id: row.message_id,
    status: STATUS[row.state],
    asked: {
      connection_id: asked.connection_id ?? null,
      model: asked.model ?? null,
      instruction: asked.instruction ?? null,
      contexts: asked.contexts ?? ("then" as const),
      context_versions: asked.context_versions ?? {},
    },
    model: row.model,
    usage: usageOf(row),
    cost: asAmount(row.cost),
    error: row.error,
    reason: row.reason,
    credits_charged: row.credits_charged,
    created: row.created,
    completed: row.completed,
    duration_ms: row.duration_ms,
  };
}

export function viewReplay(row: ReplayRow) {
  return {
    ...viewReplayCard(row),
    result: row.result,
    steps: storedJson<unknown[]>(row.steps, DAMAGED),
    contexts: storedJson<UsedContext[]>(row.contexts, []),
  };
}

export type ReplayView = ReturnType<typeof viewReplay>;
