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

/** What was to be otherwise, null where nothing was. */
export function viewAsked({ connection_id, model, instruction, contexts, context_versions }: Asked) {
  return {
    connection_id: connection_id ?? null,
    model: model ?? null,
    instruction: instruction ?? null,
    contexts: contexts ?? ("then" as const),
    context_versions: context_versions ?? {},
  };
}

/** A replay without what came of it in words, which may be long. */
export function viewReplayCard(
  row: Omit<ReplayRow, "result" | "steps" | "contexts" | "expected" | "passed" | "differs">,
) {
  return {
    id: row.id,
    message_id: row.message_id,
    status: STATUS[row.state],
    asked: viewAsked(askedOf(row)),
    model: row.model,
    usage: usageOf(row),
    cost: asAmount(row.cost),
    error: row.error,
    reason: row.reason,
    credits_charged: row.credits_charged,
    created: row.created,
    completed: row.completed,
    duration_ms: row.duration_ms,
    test_run_id: row.test_run_id,
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
