import type { Completion } from "../../ai/llm.ts";
import type { App } from "../../app.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import type { ModelFault } from "../../reasons.ts";
import { type OpenConnection, openConnection, rowOf } from "./connections.ts";

type Failure = Completion & { ok: false };

/** Faults that lie in what was asked, in what it may cost, or in the end of its run. */
const OF_ITS_REQUEST = new Set<ModelFault>([
  "budget_used_up",
  "cancelled",
  "content_filtered",
  "input_too_long",
]);
/** Faults that every model of a connection would have. */
const OF_EVERY_MODEL = new Set<ModelFault>([
  "invalid_credentials",
  "unreachable",
  "tls_error",
  "blocked_address",
]);

interface Use {
  user_id: string;
  /** As it was asked. */
  connection: OpenConnection;
  answer: Completion;
}

/**
 * Shows on a connection that its model does not answer, or that it does: a test only lists models, so that it cannot know. The
 * moment stays that of the first failure in a row.
 */
export async function noteUse(app: App, { user_id, connection, answer }: Use): Promise<void> {
  const { id, trusted } = connection;
  if (trusted || (!answer.ok && isOfRequest(answer))) return;
  const [row] = await rowOf(app.db, { id, user_id });
  if (row === undefined || !isNews(row, answer)) return;
  await app.write(async (tx) => {
    const [now] = await rowOf(tx, { id, user_id });
    if (now === undefined || !isNews(now, answer)) return;
    const as_it_is = openConnection(app, now);
    if (as_it_is === undefined || !saysOf(as_it_is, connection, answer)) return;
    const status = statusOf(answer);
    const since = status === now.status ? {} : { last_tested_at: app.now() };
    const outcome = { status, last_error: answer.ok ? null : answer.message, ...since };
    await tx.updateTable("connections").set(outcome).where("id", "=", id).execute();
  });
}

function isOfRequest({ code, of_request = false }: Failure): boolean {
  return of_request || OF_ITS_REQUEST.has(code);
}

function statusOf({ ok }: Completion): "ok" | "error" {
  return ok ? "ok" : "error";
}

function isNews({ status, last_error }: Readonly<ConnectionRow>, answer: Completion): boolean {
  if (status === "needs_auth") return false;
  return status !== statusOf(answer) || (!answer.ok && last_error !== answer.message);
}

/** Whether an answer says something of the connection as it is now: it may have been mended since, or have been asked another model. */
function saysOf(now: OpenConnection, asked: OpenConnection, answer: Completion): boolean {
  const is_same =
    now.base_url === asked.base_url &&
    now.api_key === asked.api_key &&
    Bun.deepEquals(now.headers, asked.headers);
  return is_same && (now.model === asked.model || (!answer.ok && OF_EVERY_MODEL.has(answer.code)));
}
