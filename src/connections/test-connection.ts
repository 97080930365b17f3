import { endpointOf, type ModelKind, nameAt } from "../ai/providers.ts";
import type { App } from "../app.ts";
import type { ConnectionRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { repeats, repeatsPart } from "../lib/quote.ts";
import { freshToken } from "../integrations/tokens.ts";
import { ownConnection } from "./connections.ts";
import { type ConnectionKind, isModelKind, KIND_INFO, ownBaseUrl } from "./kinds.ts";
import { type Finding, NOTHING_FOUND, PingFault, type PingTarget } from "./ping.ts";
import { API_PINGS, pingApi } from "./ping-api.ts";
import { pingMcp } from "./ping-mcp.ts";
import { pingBySession } from "./ping-by-session.ts";
import { isProgramUrl } from "./programs.ts";
import { openIfPossible, openSealed, type Sealed } from "./sealed.ts";
import { timeoutSignal } from "../lib/wait-limit.ts";

const PING_TIMEOUT_MS = 10_000;
/** A shorter credential could stand in any answer by chance. */
const MIN_ECHO_CHARS = 8;
/** Many headers are no secrets, such as the name of an application. */
const MIN_HEADER_ECHO_CHARS = 16;

/** Pings the provider without spending anything, and keeps the outcome with the connection. */
export async function testConnection(
  app: App,
  user: UserRow,
  id: string,
  timeout_ms: number = PING_TIMEOUT_MS,
) {
  const row = await withFreshToken(app, user, await ownConnection(app.db, user, id));
  const started = app.nowMs();
  const { finding, error } = await outcomeOf(app, row, timeout_ms);
  const verdict = {
    ok: error === null,
    kind: row.kind,
    status: statusOf(error),
    latency_ms: app.nowMs() - started,
    checked_at: app.now(),
    ...finding,
    error,
  };
  await keep(app, row, verdict);
  return verdict;
}

/** A token that has ended is renewed first; when that is not possible, the ping says so. */
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
}

async function outcomeOf(app: App, row: ConnectionRow, timeout_ms: number): Promise<Outcome> {
  try {
    const signal = timeoutSignal(timeout_ms);
    if (row.kind === "mcp" && isProgramUrl(row.base_url))
      return { finding: await pingBySession(app, row, signal), error: null };
    const target = targetOf(app, row, signal);
    const finding = await ping(target).catch((error: unknown) => pingOldServer(app, row, { target, error }));
    refuseEcho(target, finding);
    return { finding, error: null };
  } catch (error) {
    if (!(error instanceof PingFault)) throw error;
    return { finding: { ...NOTHING_FOUND, detail: error.message }, error: error.fault };
  }
}

function targetOf(app: App, row: ConnectionRow, signal: AbortSignal): PingTarget {
  const kind = row.kind as ConnectionKind;
  const { credential, headers } = openOrFault(app, row);
  const base_url = isModelKind(kind) ? modelBaseUrl(row, kind) : (row.base_url ?? ownBaseUrl(app, kind));
  const oauth = row.auth === "oauth";
  const name = nameAt(KIND_INFO[kind], base_url);
  if (credential === "" && oauth)
    throw new PingFault("needs_auth", `${name} has yet to be connected. Connect it to go on.`);
  if (credential === "" && KIND_INFO[kind].needs_credential)
    throw new PingFault("no_credential", `${name} needs a credential. Enter one in this connection.`);
  return { kind, name, base_url, credential, headers, oauth, fetch: app.fetch, signal };
}

/** What was sealed under another master key is as good as gone. */
function openOrFault(app: App, row: ConnectionRow): Sealed {
  try {
    return openSealed(app, row);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new PingFault("no_credential", `${error.message} Enter the credential again.`);
  }
}

function modelBaseUrl(row: ConnectionRow, kind: ModelKind): string {
  return endpointOf({ kind, base_url: row.base_url ?? "", model: "" }).base_url;
}

async function ping(target: PingTarget): Promise<Finding> {
  if (target.kind === "mcp") return pingMcp(target);
  if (target.kind !== "demo") return pingApi(target, API_PINGS[target.kind]);
  return { ...NOTHING_FOUND, detail: "Built in; it needs no network.", models: ["demo"] };
}

/** One of the transport before Streamable HTTP refuses to be greeted; the pool speaks to those. */
async function pingOldServer(
  app: App,
  row: ConnectionRow,
  { target, error }: { target: PingTarget; error: unknown },
): Promise<Finding> {
  if (row.kind !== "mcp" || !(error instanceof PingFault) || !mayBeOld(error)) throw error;
  return pingBySession(app, row, target.signal).catch((second: unknown) => {
    throw second instanceof PingFault ? error : second;
  });
}

function mayBeOld({ fault: { code, http_status: status } }: PingFault): boolean {
  return code === "bad_response" && status !== null && status >= 400 && status < 500;
}

/** A secret is never to be read again, not even by way of a server that repeats it. */
function refuseEcho({ name, credential, headers }: PingTarget, finding: Finding): void {
  const shown = JSON.stringify(finding);
  const echoed =
    (credential.length >= MIN_ECHO_CHARS && repeatsPart(shown, credential)) ||
    Object.values(headers).some((value) => value.length >= MIN_HEADER_ECHO_CHARS && repeats(shown, value));
  if (!echoed) return;
  const what = "repeats the credential, or a header of this connection, in its answer";
  throw new PingFault("bad_response", `${name} ${what}, so the answer is not shown.`);
}

/** Nothing is kept where the connection has become another one in the meantime. */
async function keep(
  app: App,
  tested: ConnectionRow,
  { status, checked_at: last_tested_at, error }: Awaited<ReturnType<typeof testConnection>>,
): Promise<void> {
  await app.write(async (tx) => {
    const now = await tx
      .selectFrom("connections")
      .select(["sealed", "base_url"])
      .where("id", "=", tested.id)
      .executeTakeFirst();
    const same = now?.base_url === tested.base_url && Bun.deepEquals(now.sealed, tested.sealed);
    if (!same) return;
    const outcome = { status, last_tested_at, last_error: error?.message ?? null };
    await tx.updateTable("connections").set(outcome).where("id", "=", tested.id).execute();
  });
}
