import { endpointOf } from "../../ai/providers.ts";
import type { App } from "../../app.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { byteStreamOf } from "../../net/byte-stream.ts";
import { member, parseJson } from "../../lib/foreign-json.ts";
import { quote } from "../../lib/quote.ts";
import { networkFault } from "../../net/responses.ts";
import { timeoutError, waitLimit } from "../../lib/wait-limit.ts";
import { ask, PingFault } from "./ping.ts";
import { pingTarget } from "./ping-target.ts";
import { HOUR_MS } from "../../lib/durations.ts";

/** How long Ollama may be silent: it says nothing while it verifies a large model. */
const QUIET_MS = 600_000;
const LONGEST_MS = 12 * HOUR_MS;
const TOLD_EVERY_MS = 500;
const MAX_LINE_CHARS = 65_536;
const RETRY_SECONDS = 60;
const AGAIN = "Fetch it again: it goes on from there.";

/** One report of a pull; the last one has `done` or `error`. */
export interface PullProgress {
  /** In the words of Ollama. */
  status?: string;
  completed?: number;
  total?: number;
  done?: true;
  error?: string;
}

/**
 * Has an Ollama fetch a model, and tells the progress as server-sent events. When the listener leaves, Ollama keeps
 * what it has, and goes on from there the next time. One pull of an account goes on at a time.
 */
export function pullModel(
  app: App,
  user: UserRow,
  { row, gone }: { row: ConnectionRow; gone: AbortSignal },
): ReadableStream<Uint8Array> {
  if (row.kind !== "ollama")
    throw invalid("body.kind", "not_ollama", "Only a connection to an Ollama can fetch a model.");
  const name = `pull ${user.id}`;
  if (app.changes.listeners(name) > 0)
    throw new AppError("rate_limited", "A model is being fetched for this account already.", {
      fix: "Wait until it is there, or close the window in which it is fetched.",
      retry_after_seconds: RETRY_SECONDS,
    });
  const end = new AbortController();
  const leave = () => end.abort();
  const forget = app.changes.listen(name, (news) => news === null && leave());
  gone.addEventListener("abort", leave, { once: true });
  end.signal.addEventListener("abort", forget, { once: true });
  return byteStreamOf(eventsOf(pull(app, row, end), leave), {
    onError: (error) => app.log.error({ err: error }, "fetching a model broke off"),
    onLeave: leave,
  });
}

async function* eventsOf(steps: AsyncGenerator<PullProgress>, leave: () => void): AsyncGenerator<Uint8Array> {
  try {
    for await (const step of steps) yield Buffer.from(`data: ${JSON.stringify(step)}\n\n`);
  } finally {
    leave();
  }
}

async function* pull(app: App, row: ConnectionRow, end: AbortController): AsyncGenerator<PullProgress> {
  const { model } = endpointOf({ kind: "ollama", base_url: "", model: row.model ?? "" });
  const late = waitLimit(LONGEST_MS, () => end.abort(timeoutError()));
  try {
    const target = pingTarget(app, row, end.signal);
    const url = new URL(target.base_url);
    url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, "").replace(/\/v1$/, "")}/api/pull`;
    const response = await ask(target, {
      url,
      method: "POST",
      credential: { authorization: `Bearer ${target.credential}` },
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, stream: true }),
    });
    const secrets = [target.credential, ...Object.values(target.headers)];
    yield* progressOf(response, { name: target.name, secrets, end });
  } catch (error) {
    if (isLeft(end.signal)) return yield { error: `This server is about to stop. ${AGAIN}` };
    if (error instanceof PingFault) return yield { error: error.message };
    const fault = networkFault(error);
    if (fault === null) throw error;
    yield { error: `The Ollama could not be reached any more. ${fault.message} ${AGAIN}` };
  } finally {
    late.clear();
  }
}

/** Whether a pull was ended by its reader or by the end of the server, rather than by a time limit. */
function isLeft({ aborted, reason }: AbortSignal): boolean {
  return aborted && (reason as Error).name === "AbortError";
}

interface Puller {
  name: string;
  secrets: string[];
  end: AbortController;
}

/** The progress, not more often than anybody can read; the last report always. */
async function* progressOf(response: Response, { name, secrets, end }: Puller): AsyncGenerator<PullProgress> {
  let told_at = 0;
  let succeeded = false;
  for await (const line of linesOf(response, end)) {
    const said = parseJson(line);
    const fault = member(said, "error");
    if (typeof fault === "string") return yield { error: `${name} says: ${quote(fault, secrets)}` };
    const status = member(said, "status");
    if (typeof status !== "string") continue;
    succeeded = status === "success";
    if (performance.now() - told_at < TOLD_EVERY_MS) continue;
    told_at = performance.now();
    yield { status: quote(status, secrets), ...sizesOf(said) };
  }
  yield succeeded ? { done: true } : { error: `${name} broke off before the model was there. ${AGAIN}` };
}

function sizesOf(said: unknown): Pick<PullProgress, "completed" | "total"> {
  const [completed, total] = [member(said, "completed"), member(said, "total")];
  if (!isSize(total) || total === 0) return {};
  return { completed: isSize(completed) ? Math.min(completed, total) : 0, total };
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

async function* linesOf({ body }: Response, end: AbortController): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let quiet = waitLimit(QUIET_MS, () => end.abort(timeoutError()));
  try {
    for await (const chunk of body ?? []) {
      quiet.clear();
      quiet = waitLimit(QUIET_MS, () => end.abort(timeoutError()));
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = (lines.pop() ?? "").slice(-MAX_LINE_CHARS);
      yield* lines;
    }
    yield rest;
  } finally {
    quiet.clear();
  }
}
