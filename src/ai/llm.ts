import type { APIPromise, OpenAI } from "openai";
import { JsonExcess, parseForeign } from "../lib/json-depth.ts";
import type { SafeFetch } from "../net/guarded-fetch.ts";
import { readCapped } from "../net/responses.ts";
import { type DemoBrief, demoAnswer } from "./demo.ts";
import { type CompletionSuccess, readAnswer } from "./llm-answer.ts";
import {
  type CompletionFailure,
  deadlineFailure,
  failure,
  networkFailure,
  redirectFailure,
  refusalFailure,
  tooMuch,
  unreadable,
} from "./llm-faults.ts";
import { type ChatMessage, type ToolOffer, toolsToWire, toWire } from "./llm-messages.ts";
import { endpointOf, MODEL_KINDS, type ModelConnection } from "./providers.ts";
import { MB } from "../lib/sizes.ts";

const MAX_ANSWER_BYTES = 4 * MB;
const MAX_CLIENTS = 200;

export interface CompletionInput {
  connection: ModelConnection;
  messages: ChatMessage[];
  /** Tools that the model may call. Calls are only returned, never made here. */
  tools?: ToolOffer[];
  max_tokens?: number;
  temperature?: number;
  signal: AbortSignal;
  fetch: SafeFetch;
  /** The input of the demo model; without it the last user message is its instruction. Real models never see it. */
  brief?: DemoBrief;
}

export type Completion = CompletionSuccess | CompletionFailure;

/** Asks a model once. Failures of the provider are returned; the job decides about retries. */
export async function complete(input: CompletionInput): Promise<Completion> {
  const { connection } = input;
  if (connection.kind === "demo") {
    return demoCompletion(input);
  }
  const unusable = unusableConnection(connection);
  if (unusable !== null) {
    return unusable;
  }
  try {
    const client = await clientOf(connection, input.fetch);
    const answer: unknown = await client.chat.completions.create(requestOf(input), { signal: input.signal });
    return readAnswer(answer, input);
  } catch (error) {
    return failureOf(error, input);
  }
}

function demoCompletion(input: CompletionInput): Completion {
  const asked = input.messages.findLast((message) => message.role === "user")?.content ?? "";
  const brief = input.brief ?? { instruction: asked, content: "", attachments: [], contexts: [] };
  const text = demoAnswer(brief);
  return { ok: true, text, tool_calls: [], model: "demo", usage: null, finish_reason: "stop" };
}

function unusableConnection(connection: ModelConnection): CompletionFailure | null {
  const { base_url, model } = endpointOf(connection);
  if (base_url === "") {
    return failure(connection, "unreachable", "has no base URL. Enter one in this connection.");
  }
  if (model === "") {
    return failure(connection, "model_not_found", "needs a model name. Enter one in this connection.");
  }
  if (connection.api_key === "" && MODEL_KINDS[connection.kind].needs_credential) {
    return failure(connection, "invalid_credentials", "needs an API key. Enter one in this connection.");
  }
  if ([connection.api_key, ...Object.values(connection.headers ?? {})].some((value) => !isSendable(value))) {
    const cause =
      "cannot be sent the API key or a header: it holds a line break or a character outside of ASCII.";
    return failure(connection, "invalid_credentials", `${cause} Paste it again.`);
  }
  return null;
}

function isSendable(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value);
}

function requestOf(input: CompletionInput): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const maxTokensField = MODEL_KINDS[input.connection.kind].max_tokens_field;
  return {
    model: endpointOf(input.connection).model,
    messages: toWire(input.messages),
    ...toolsToWire(input.tools),
    ...(input.max_tokens === undefined ? {} : { [maxTokensField]: input.max_tokens }),
    ...(input.temperature === undefined ? {} : { temperature: input.temperature }),
  };
}

const clients = new WeakMap<SafeFetch, Map<string, { made_from: string; client: OpenAI }>>();

/**
 * Returns the client of a connection, cached until its settings change, because creating one costs more than a call.
 */
async function clientOf(connection: ModelConnection, fetch: SafeFetch): Promise<OpenAI> {
  const byId = clients.get(fetch) ?? new Map<string, { made_from: string; client: OpenAI }>();
  clients.set(fetch, byId);
  const { id, kind, base_url, api_key, headers } = connection;
  const made_from = JSON.stringify([kind, base_url, api_key, headers]);
  const known = byId.get(id);
  if (known?.made_from === made_from) {
    return known.client;
  }
  const client = await createClient(connection, fetch);
  byId.set(id, { made_from, client });
  const [oldest] = byId.keys();
  if (byId.size > MAX_CLIENTS && oldest !== undefined) {
    byId.delete(oldest);
  }
  return client;
}

async function createClient(connection: ModelConnection, fetch: SafeFetch): Promise<OpenAI> {
  // The library is loaded at the first call: it would cost the start 80 ms, and memory where no model is used.
  const { default: Client, APIPromise: Answered } = await import("openai");
  const headers = headersOf(connection);
  /**
   * Skips what the parent class does for each call (preparing, timing, logging, retrying), which costs ten times the
   * call and is done elsewhere here.
   */
  class PlainClient extends Client {
    override request<Answer>(given: Parameters<OpenAI["request"]>[0]): APIPromise<Answer> {
      const sent = async () => {
        const options = await given;
        const { body, path, signal } = options;
        const init = { method: "POST", headers, body: JSON.stringify(body), ...(signal ? { signal } : {}) };
        const response = await ask(connection, fetch, { url: this.buildURL(path, null), init });
        return { ...UNUSED, options, response };
      };
      return new Answered<Answer>(
        this,
        sent(),
        async (_, { response }) => parseForeign(await response.text()) as never,
      );
    }
  }
  return new PlainClient({
    baseURL: endpointOf(connection).base_url,
    // The client requires a key; `headersOf` decides what is sent.
    apiKey: connection.api_key === "" ? "none" : connection.api_key,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: "off",
  });
}

/** Options that only this client sees. */
const UNUSED = {
  controller: new AbortController(),
  requestLogID: "",
  retryOfRequestLogID: undefined,
  startTime: 0,
};

/** Carries a failure through the client, whose own errors would drop much of what providers say. */
class CallFault extends Error {
  readonly failure: CompletionFailure;

  constructor(outcome: CompletionFailure) {
    super("the provider gave no answer");
    this.failure = outcome;
  }
}

/** Returns all headers of a call. */
function headersOf({ api_key, headers }: ModelConnection): Headers {
  const sent = new Headers({ accept: "application/json", "content-type": "application/json" });
  sent.set("user-agent", "Mailwright");
  if (api_key !== "") {
    sent.set("authorization", `Bearer ${api_key}`);
  }
  for (const [name, value] of Object.entries(headers ?? {})) {
    sent.set(name, value);
  }
  return sent;
}

/** Returns a successful response with a limited body, and throws everything else as CallFault. */
async function ask(
  connection: ModelConnection,
  fetch: SafeFetch,
  { url, init }: { url: string; init: RequestInit },
): Promise<Response> {
  try {
    // Redirects are not followed, because they could take the key elsewhere.
    const response = await fetch(url, { ...init, redirect: "manual" });
    const { bytes, truncated } = await readCapped(response, MAX_ANSWER_BYTES);
    const bad = badAnswer(connection, response, { text: () => new TextDecoder().decode(bytes), truncated });
    if (bad !== null) {
      throw new CallFault(bad);
    }
    // Sets the type, so that the client parses JSON even from servers that declare another.
    return new Response(bytes, { headers: { "content-type": "application/json" } });
  } catch (error) {
    const fault = error instanceof CallFault ? null : networkFailure(connection, error);
    throw fault === null ? error : new CallFault(fault);
  }
}

function badAnswer(
  connection: ModelConnection,
  response: Response,
  body: { text: () => string; truncated: boolean },
): CompletionFailure | null {
  if (response.status >= 300 && response.status < 400) {
    return redirectFailure(connection, response.headers.get("location"));
  }
  if (!response.ok) {
    return refusalFailure(connection, response, body.text());
  }
  return body.truncated ? tooMuch(connection, "more than 4 MB") : null;
}

function failureOf(error: unknown, input: CompletionInput): CompletionFailure {
  if (input.signal.aborted) {
    return deadlineFailure(input.connection, input.signal.reason);
  }
  if (error instanceof CallFault) {
    return error.failure;
  }
  if (error instanceof JsonExcess) {
    return tooMuch(input.connection, error.message);
  }
  if (error instanceof SyntaxError) {
    return unreadable(input.connection, "answered with something that is not JSON");
  }
  throw error;
}
