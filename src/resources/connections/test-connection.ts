import type { App } from "../../app.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { freshToken } from "../integrations/tokens.ts";
import { containsSecret, containsSecretPart } from "../../lib/quote.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";
import { firstOf, refuseMissingModel } from "./chosen-model.ts";
import type { NewConnection } from "./body-shapes.ts";
import { draftConnection, ownConnection } from "./connections.ts";
import { isModelKind } from "./kinds.ts";
import { lookBeside } from "./look-beside.ts";
import { type Finding, NOTHING_FOUND, PingFault, type PingTarget } from "./ping.ts";
import { apiPingOf, pingApi } from "./ping-api.ts";
import { pingMcp } from "./ping-mcp.ts";
import { type Ask, pingBySession } from "./ping-by-session.ts";
import { pingTarget } from "./ping-target.ts";
import { isProgramUrl } from "./programs.ts";
import { openIfPossible } from "./sealed.ts";
import { tryWaiting } from "./try-waiting.ts";

const PING_TIMEOUT_MS = 10_000;
/** The shortest credential that is looked for in answers: a shorter one could stand in any answer by chance. */
const MIN_ECHO_CHARS = 8;
/** The shortest header that counts as a secret: many are none, such as the name of an application. */
const MIN_HEADER_ECHO_CHARS = 16;

/** The most models that are shown. */
const MAX_MODELS = 200;

/** Tests a connection without spending anything, and keeps the outcome with it. */
export async function testConnection(
  app: App,
  user: UserRow,
  id: string,
  timeout_ms: number = PING_TIMEOUT_MS,
) {
  const row = await withFreshToken(app, user, await ownConnection(app.db, user, id));
  const verdict = await verdictOn(app, row, timeout_ms);
  await keep(app, row, verdict);
  if (verdict.ok) await tryWaiting(app, row);
  return verdict;
}

/** As `testConnection`, for a connection that is not made yet: nothing is kept. */
export async function testDraft(app: App, user: UserRow, input: NewConnection) {
  return verdictOn(app, draftConnection(app, user, input), PING_TIMEOUT_MS, true);
}

async function verdictOn(app: App, row: ConnectionRow, timeout_ms: number, draft = false) {
  const started = app.nowMs();
  const { finding, error, suggested_base_url } = await outcomeOf(app, row, { timeout_ms, draft });
  return {
    ok: error === null,
    kind: row.kind,
    status: statusOf(error),
    latency_ms: app.nowMs() - started,
    checked_at: app.now(),
    ...finding,
    models: finding.models.slice(0, MAX_MODELS),
    error,
    ...(suggested_base_url === undefined ? {} : { suggested_base_url }),
  };
}

/** The row with a fresh token: one that has ended is renewed first. Where that is not possible, the ping says so. */
async function withFreshToken(app: App, user: UserRow, row: ConnectionRow): Promise<ConnectionRow> {
  if (row.auth !== "oauth" || openIfPossible(app, row) === undefined) return row;
  await freshToken(app, row.id);
  return ownConnection(app.db, user, row.id);
}

type Fault = PingFault["fault"];

function statusOf(error: Fault | null): "ok" | "error" | "needs_auth" {
  if (error === null) return "ok";
  return error.code === "needs_auth" ? "needs_auth" : "error";
}

interface Outcome {
  finding: Finding;
  error: Fault | null;
  suggested_base_url?: string | undefined;
}

interface Wait {
  timeout_ms: number;
  /** Set if the connection is not made yet. */
  draft: boolean;
}

async function outcomeOf(app: App, row: ConnectionRow, { timeout_ms, draft }: Wait): Promise<Outcome> {
  try {
    const ask = { signal: timeoutSignal(timeout_ms), draft };
    if (row.kind === "mcp" && isProgramUrl(row.base_url))
      return { finding: await pingBySession(app, row, ask), error: null };
    return { finding: await findingOf(app, row, ask), error: null };
  } catch (error) {
    if (!(error instanceof PingFault)) throw error;
    const { models = [], suggested_base_url } = error.beside;
    return {
      finding: { ...NOTHING_FOUND, detail: error.message, models },
      error: error.fault,
      suggested_base_url,
    };
  }
}

async function findingOf(app: App, row: ConnectionRow, ask: Ask): Promise<Finding> {
  const target = pingTarget(app, row, ask.signal);
  const found = await ping(target)
    .catch((error: unknown) => {
      if (row.kind !== "mcp" || !isNoInterface(error)) throw error;
      return pingOldServer(app, row, { ask, error });
    })
    .catch((error: unknown) => {
      if (!isNoInterface(error)) throw error;
      return lookBeside(target, error);
    });
  const finding = { ...found, tools: firstOf(found.tools) };
  refuseEcho(target, finding);
  const { kind, model } = row;
  if (isModelKind(kind) && kind !== "demo")
    await refuseMissingModel(target, { kind, model: model ?? "" }, finding);
  return finding;
}

/** Whether something else than what is wanted has answered. */
function isNoInterface(error: unknown): error is PingFault {
  return error instanceof PingFault && error.fault.code === "bad_response";
}

async function ping(target: PingTarget): Promise<Finding> {
  if (target.kind === "mcp") return pingMcp(target);
  if (target.kind !== "demo") return pingApi(target, apiPingOf(target.kind));
  return { ...NOTHING_FOUND, detail: "Built in; it needs no network.", models: ["demo"] };
}

/**
 * Pings a server of the transport before Streamable HTTP, which refuses the handshake of this one; the pool speaks
 * that transport.
 */
async function pingOldServer(
  app: App,
  row: ConnectionRow,
  { ask, error }: { ask: Ask; error: PingFault },
): Promise<Finding> {
  const status = error.fault.http_status ?? 0;
  if (status < 400 || status >= 500) throw error;
  return pingBySession(app, row, ask).catch((second: unknown) => {
    throw second instanceof PingFault ? error : second;
  });
}

/** Throws if a server repeats a secret: nobody may read one again, not even by way of a server. */
function refuseEcho({ name, credential, headers }: PingTarget, finding: Finding): void {
  const shown = JSON.stringify({ ...finding, models: firstOf(finding.models) });
  const of_headers = Object.values(headers).filter(({ length }) => length >= MIN_HEADER_ECHO_CHARS);
  const echoed =
    (credential.length >= MIN_ECHO_CHARS && containsSecretPart(shown, credential)) ||
    containsSecret(shown, of_headers);
  if (!echoed) return;
  const what = "repeats the credential, or a header of this connection, in its answer";
  throw new PingFault("bad_response", `${name} ${what}, so the answer is not shown.`);
}

/** Keeps the outcome of a test, unless the connection has become another one in the meantime. */
async function keep(
  app: App,
  tested: ConnectionRow,
  { status, checked_at: last_tested_at, error }: Awaited<ReturnType<typeof testConnection>>,
): Promise<void> {
  await app.write(async (tx) => {
    const now = await tx
      .selectFrom("connections")
      .select(["sealed", "base_url", "model"])
      .where("id", "=", tested.id)
      .executeTakeFirst();
    const same =
      now?.base_url === tested.base_url &&
      now.model === tested.model &&
      Bun.deepEquals(now.sealed, tested.sealed);
    if (!same) return;
    const outcome = { status, last_tested_at, last_error: error?.message ?? null };
    await tx.updateTable("connections").set(outcome).where("id", "=", tested.id).execute();
  });
}
