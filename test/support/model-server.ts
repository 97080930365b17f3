/** What a chat request to the stand-in looks like. */
export interface ModelRequestBody {
  model: string;
  messages: {
    role: string;
    content: string;
    tool_call_id?: string;
    tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  }[];
  tools?: { function: { name: string; description: string; parameters: Record<string, unknown> } }[];
  max_tokens?: number;
  max_completion_tokens?: number;
  temperature?: number;
}

export interface ModelRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: ModelRequestBody | null;
}

export type ModelFault =
  | "none"
  | "hang"
  | "slow"
  | "drop_before_answer"
  | "drop_mid_body"
  | "garbage"
  | "html_200"
  | "html_502"
  | "rate_limited"
  | "unauthorized"
  | "unknown_model"
  | "content_filter"
  | "redirect"
  | "no_choices"
  | "null_content"
  | "huge";

export interface ModelServerOptions {
  /** The text of an answer, or a whole Response. Default: an echo of the last user message. */
  reply?: (body: ModelRequestBody) => string | Response | Promise<string | Response>;
  fault?: ModelFault;
  /** Refuses every other key with 401. */
  api_key?: string;
  /** Whether its models are listed for everybody, as llama.cpp does it. */
  open_list?: boolean;
  models?: string[];
  /** What the fault "rate_limited" says, in seconds or as a date. */
  retry_after?: string;
  slow_ms?: number;
}

export interface ModelServer extends AsyncDisposable {
  base_url: string;
  port: number;
  /** May be changed between requests. */
  fault: ModelFault;
  /** Every request, in order of arrival. */
  requests: ModelRequest[];
  /** Resolves as soon as so many requests have arrived in all. */
  received: (count: number) => Promise<void>;
}

const ANSWER_BYTES = 5 * 1024 * 1024;

/** An OpenAI-compatible stand-in (`/v1/chat/completions`, `/v1/models`) on a free loopback port. */
export function startModelServer(options: ModelServerOptions = {}): ModelServer {
  const requests: ModelRequest[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      const recorded = await record(request);
      requests.push(recorded);
      for (const waiter of waiting.filter(({ count }) => count <= requests.length)) {
        waiter.resolve();
      }
      return answer(recorded, model.fault, options);
    },
  });
  const model: ModelServer = {
    base_url: `http://127.0.0.1:${server.port}/v1`,
    port: server.port ?? 0,
    fault: options.fault ?? "none",
    requests,
    received: (count) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ count, resolve });
      if (requests.length >= count) {
        resolve();
      }
      return promise;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return model;
}

/** A chat completion's body, as the real providers send it. */
export function chatCompletion(text: string | null, model = "stand-in"): Record<string, unknown> {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_767_225_600,
    model,
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  };
}

/** A chat completion that asks for calls; `args` as text is sent as it stands. */
export function toolCalls(
  calls: { name: string; args?: Record<string, unknown> | string }[],
  text: string | null = null,
): Response {
  const completion = chatCompletion(text);
  const tool_calls = calls.map(({ name, args = {} }, index) => ({
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
  }));
  const message = { role: "assistant", content: text, tool_calls };
  return Response.json({ ...completion, choices: [{ index: 0, message, finish_reason: "tool_calls" }] });
}

async function record(request: Request): Promise<ModelRequest> {
  const text = await request.text();
  return {
    method: request.method,
    path: new URL(request.url).pathname,
    headers: Object.fromEntries(request.headers),
    body: text === "" ? null : (JSON.parse(text) as ModelRequestBody),
  };
}

async function answer(
  request: ModelRequest,
  fault: ModelFault,
  options: ModelServerOptions,
): Promise<Response> {
  if (!mayAsk(request, options)) return unauthorized(request);
  const faulty = FAULTS[fault];
  if (faulty !== undefined) {
    return faulty(request, options);
  }
  if (fault === "slow") {
    await Bun.sleep(options.slow_ms ?? 100);
  }
  if (request.path.endsWith("/models")) {
    const ids = options.models ?? ["stand-in"];
    return Response.json({ object: "list", data: ids.map((id) => ({ id, object: "model" })) });
  }
  const body = request.body ?? { model: "", messages: [] };
  if (request.body && body.messages.length === 0) return refusal(400, "[] is too short - 'messages'");
  const reply = await (options.reply ?? echo)(body);
  return typeof reply === "string" ? Response.json(chatCompletion(reply, body.model)) : reply;
}

function mayAsk(
  { headers, path }: ModelRequest,
  { api_key, open_list = false }: ModelServerOptions,
): boolean {
  const is_known = api_key === undefined || headers["authorization"] === `Bearer ${api_key}`;
  return is_known || (open_list && path.endsWith("/models"));
}

function echo(body: ModelRequestBody): string {
  return `Echo: ${body.messages.findLast(({ role }) => role === "user")?.content ?? ""}`;
}

type FaultyAnswer = (request: ModelRequest, options: ModelServerOptions) => Response | Promise<Response>;

const FAULTS: Partial<Record<ModelFault, FaultyAnswer>> = {
  hang: () => new Promise<never>(() => undefined),
  drop_before_answer: () => brokenOff(""),
  drop_mid_body: () => brokenOff(JSON.stringify(chatCompletion("never complete")).slice(0, 60)),
  garbage: () => new Response('{"choices": [', { headers: { "content-type": "application/json" } }),
  html_200: () => htmlPage(200),
  html_502: () => htmlPage(502),
  rate_limited: (_, options) =>
    refusal(429, "Rate limit reached", { "retry-after": options.retry_after ?? "7" }),
  unauthorized,
  unknown_model: (request) => refusal(404, `The model ${request.body?.model} does not exist`),
  content_filter: () =>
    Response.json({ choices: [{ message: { content: null }, finish_reason: "content_filter" }] }),
  redirect: () => new Response(null, { status: 307, headers: { location: "http://169.254.169.254/latest" } }),
  no_choices: () => Response.json({ ...chatCompletion(""), choices: [] }),
  null_content: () => Response.json(chatCompletion(null)),
  huge: () => Response.json(chatCompletion("x".repeat(ANSWER_BYTES))),
};

/** Repeats the key it was sent, as careless servers do. */
function unauthorized(request: ModelRequest): Response {
  return refusal(
    401,
    `Incorrect API key provided: ${request.headers["authorization"]?.replace("Bearer ", "")}`,
  );
}

function refusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: { message, type: "error", code: null } }, { status, headers });
}

function htmlPage(status: number): Response {
  const html = "<!DOCTYPE html><html><title>Oops</title><body>nothing here</body></html>";
  return new Response(html, { status, headers: { "content-type": "text/html" } });
}

/** A body that ends in a broken connection. */
function brokenOff(start: string): Response {
  let sent = false;
  const stream = new ReadableStream({
    pull: (controller) => {
      if (sent || start === "") {
        // Without an error object, which Bun would print as if it were a mistake.
        controller.error();
        return;
      }
      sent = true;
      controller.enqueue(new TextEncoder().encode(start));
    },
  });
  return new Response(stream, { headers: { "content-type": "application/json" } });
}
