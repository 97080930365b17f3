import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { complete, type CompletionInput } from "../../src/ai/llm.ts";
import type { CompletionFailure } from "../../src/ai/llm-faults.ts";
import { endpointOf, MODEL_KINDS, type ModelConnection, type ModelKind } from "../../src/ai/providers.ts";
import { createSafeFetch, type SafeFetch } from "../../src/net/guarded-fetch.ts";
import {
  chatCompletion,
  type ModelFault,
  type ModelServer,
  startModelServer,
} from "../support/model-server.ts";

const KEY = "sk-test-0123456789abcdef";
const noDns = async (): Promise<string[]> => [];
const safeFetch = createSafeFetch({ resolve: noDns, allow: ["127.0.0.1"] });

let model: ModelServer;
beforeEach(() => {
  model = startModelServer();
});
afterEach(() => model[Symbol.asyncDispose]());

function connectionTo(changes: Partial<ModelConnection> = {}): ModelConnection {
  return {
    id: "connection-1",
    kind: "openai_compatible",
    base_url: model.base_url,
    api_key: KEY,
    model: "m-1",
    ...changes,
  };
}

function ask(changes: Partial<CompletionInput> = {}) {
  return complete({
    connection: connectionTo(),
    messages: [
      { role: "system", content: "You are brief." },
      { role: "user", content: "Hello" },
    ],
    signal: AbortSignal.timeout(5_000),
    fetch: safeFetch,
    ...changes,
  });
}

async function failing(changes: Partial<CompletionInput> = {}): Promise<CompletionFailure> {
  const result = await ask(changes);
  if (result.ok) {
    throw new Error(`expected a failure, got: ${result.text}`);
  }
  return result;
}

const says = (status: number, body: unknown) => ({ status, body });

const replying = (body: unknown, init?: ResponseInit) =>
  startModelServer({ reply: () => Response.json(body, init) });

function answering(message: object) {
  return { choices: [{ message: { role: "assistant", content: null, ...message } }] };
}

function asking(given: unknown[]) {
  return {
    tool_calls: given.map((args, index) => ({
      id: `c${index}`,
      function: { name: "read", arguments: args },
    })),
  };
}

function membersOf(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, {}]));
}

test("returns the text, the model, the usage and why it ended", async () => {
  expect(await ask()).toEqual({
    ok: true,
    text: "Echo: Hello",
    tool_calls: [],
    model: "m-1",
    usage: { input_tokens: 11, output_tokens: 7 },
    finish_reason: "stop",
  });
});

test("gives the calls that a model asks for, each with an id of its own", async () => {
  const called = (id: unknown, args: unknown) => ({ id, function: { name: "look", arguments: args } });
  const tool_calls = [called("a", "{}"), called("a", { q: 1 }), called("", undefined), { id: "b" }, null];
  const body = { choices: [{ message: { content: null, tool_calls }, finish_reason: "tool_calls" }] };
  await using server = replying(body);
  expect(await ask({ connection: connectionTo({ base_url: server.base_url }) })).toMatchObject({
    ok: true,
    text: "",
    tool_calls: [
      { id: "a", name: "look", arguments: "{}" },
      { id: "call00001", name: "look", arguments: '{"q":1}' },
      { id: "call00002", name: "look", arguments: "{}" },
    ],
  });
});

test("sends tools, calls, their results and pictures as the interface takes them", async () => {
  const tool = { name: "look", description: "Looks.", parameters: { type: "object" } };
  await ask({
    tools: [tool],
    messages: [
      { role: "user", content: "See", images: [{ content_type: "image/png", bytes: new Uint8Array([1]) }] },
      { role: "assistant", content: "", tool_calls: [{ id: "a", name: "look", arguments: "{}" }] },
      { role: "tool", content: "seen", tool_call_id: "a" },
    ],
  });
  expect(model.requests[0]?.body).toMatchObject({
    tools: [{ type: "function", function: tool }],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "See" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AQ==" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }],
      },
      { role: "tool", content: "seen", tool_call_id: "a" },
    ],
  });
});

test("sends the messages and options as they are, under the connection's own headers and no others", async () => {
  const headers = { "x-team": "mail", "user-agent": "Custom" };
  await ask({ connection: connectionTo({ headers }), max_tokens: 50, temperature: 0 });
  const [request] = model.requests;
  expect(request?.path).toBe("/v1/chat/completions");
  expect(request?.body).toEqual({
    model: "m-1",
    messages: [
      { role: "system", content: "You are brief." },
      { role: "user", content: "Hello" },
    ],
    max_tokens: 50,
    temperature: 0,
  });
  expect(request?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, ...headers });
  expect(Object.keys(request?.headers ?? {}).filter((name) => name.startsWith("x-"))).toEqual(["x-team"]);
});

test("gives OpenAI its newer name for the token limit, and leaves unset options out", async () => {
  await ask({ connection: connectionTo({ kind: "openai" }), max_tokens: 9 });
  await ask({ connection: connectionTo({ kind: "openai" }) });
  expect(model.requests[0]?.body).toMatchObject({ max_completion_tokens: 9 });
  expect(Object.keys(model.requests[1]?.body ?? {}).sort()).toEqual(["messages", "model"]);
});

test("sends no Authorization where there is no key", async () => {
  await ask({ connection: connectionTo({ api_key: "" }) });
  expect(model.requests[0]?.headers).not.toHaveProperty("authorization");
});

test("a changed key or address counts from the next call on", async () => {
  await using other = startModelServer();
  await ask();
  await ask({ connection: connectionTo({ api_key: "sk-second-key" }) });
  await ask({ connection: connectionTo({ base_url: other.base_url }) });
  expect(model.requests.map(({ headers }) => headers["authorization"])).toEqual([
    `Bearer ${KEY}`,
    "Bearer sk-second-key",
  ]);
  expect(other.requests).toHaveLength(1);
});

test("two connections at once never mix their keys", async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `c-${index}`);
  await Promise.all(
    ids.map(async (id) =>
      ask({
        connection: connectionTo({ id, api_key: `sk-key-${id}` }),
        messages: [{ role: "user", content: id }],
      }),
    ),
  );
  for (const { headers, body } of model.requests) {
    expect(headers["authorization"]).toBe(`Bearer sk-key-${body?.messages[0]?.content}`);
  }
  expect(model.requests).toHaveLength(20);
});

describe("what goes wrong at the provider is an outcome", () => {
  const outcomes: [ModelFault, string, boolean, string][] = [
    ["drop_before_answer", "unreachable", true, "broke off"],
    ["drop_mid_body", "unreachable", true, "broke off"],
    ["garbage", "bad_response", true, "not JSON"],
    ["html_200", "bad_response", true, "base URL"],
    ["html_502", "provider_error", true, "(502)"],
    ["rate_limited", "rate_limited", true, "(429)"],
    ["unauthorized", "invalid_credentials", false, "API key"],
    ["unknown_model", "model_not_found", false, "m-1"],
    ["content_filter", "content_filtered", false, "refused"],
    ["redirect", "bad_response", false, "redirects to http://169.254.169.254/latest"],
    ["no_choices", "bad_response", true, "without a message"],
    ["null_content", "bad_response", true, "without any text"],
    ["huge", "bad_response", false, "more than 4 MB"],
  ];
  test.each(outcomes)("%s: %s, retryable %p", async (fault, code, retryable, words) => {
    model.fault = fault;
    const result = await failing();
    expect(result).toMatchObject({ ok: false, code, retryable });
    expect(result.message).toStartWith(`OpenAI-compatible server at 127.0.0.1:${model.port} `);
    expect(result.message).toContain(words);
    expect(result.message).not.toContain(KEY);
    expect(result.message).not.toContain("<");
    expect(model.requests).toHaveLength(1);
  });

  const excessive: [string, unknown, string][] = [
    ["choices", { choices: Array.from({ length: 20_000 }, () => ({})) }, "50,000 parts"],
    ["parts of text", answering({ content: Array.from({ length: 20_000 }, () => ({})) }), "50,000 parts"],
    ["arguments as data", answering(asking([membersOf(20_000)])), "50,000 parts"],
    [
      "arguments of one call",
      answering(asking([JSON.stringify(membersOf(20_000))])),
      "50,000 parts in its calls",
    ],
    [
      "arguments of all calls together",
      answering(asking(Array.from({ length: 60 }, () => JSON.stringify(membersOf(500))))),
      "50,000 parts in its calls",
    ],
    ["levels", answering(asking([JSON.parse("[".repeat(300) + "]".repeat(300))])), "200 levels"],
  ];
  test.each(excessive)("an answer with too many %s is not read", async (_, body, words) => {
    await using server = replying(body);
    const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ code: "bad_response", retryable: false });
    expect(result.message).toContain(`sent an answer of more than ${words}. Ask for less`);
  });

  test("an answer with many parts, but not too many, is read", async () => {
    const given = [membersOf(5_000), ...Array.from({ length: 40 }, () => JSON.stringify(membersOf(100)))];
    await using server = replying(answering(asking(given)));
    const result = await ask({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ ok: true });
    expect(result.ok && result.tool_calls).toHaveLength(41);
  });

  test("a hanging provider ends with the caller's time", async () => {
    model.fault = "hang";
    const result = await failing({ signal: AbortSignal.timeout(50) });
    expect(result).toMatchObject({ code: "timeout", retryable: true, retry_after_seconds: null });
  });

  test("a run that is ended is told from one that took too long", async () => {
    model.fault = "hang";
    const controller = new AbortController();
    const pending = failing({ signal: controller.signal });
    await model.received(1);
    controller.abort();
    expect((await pending).code).toBe("cancelled");
    expect((await failing({ signal: AbortSignal.abort() })).code).toBe("cancelled");
    expect(model.requests).toHaveLength(1);
  });

  test("nothing listening", async () => {
    const { base_url } = model;
    await model[Symbol.asyncDispose]();
    expect(await failing({ connection: connectionTo({ base_url }) })).toMatchObject({
      code: "unreachable",
      retryable: true,
    });
  });

  test("an address that may not be dialled, and the setting that mends it", async () => {
    const strict = createSafeFetch({ resolve: noDns, allow: [] });
    const result = await failing({ fetch: strict });
    expect(result).toMatchObject({ code: "blocked_address", retryable: false });
    expect(result.message).toContain("egress.allow");
    expect(model.requests).toHaveLength(0);
  });

  test("a host name that does not exist", async () => {
    const connection = connectionTo({ base_url: "https://no-such.example/v1" });
    const result = await failing({ connection });
    expect(result.code).toBe("unreachable");
    expect(result.message).toContain("no address");
  });

  test("Retry-After as seconds and as a date, only where trying again makes sense", async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    for (const [retry_after, low, high] of [
      ["7", 7, 7],
      [date, 50, 61],
    ] as const) {
      await using limited = startModelServer({ fault: "rate_limited", retry_after });
      const result = await failing({ connection: connectionTo({ base_url: limited.base_url }) });
      expect(result.retry_after_seconds).toBeGreaterThanOrEqual(low);
      expect(result.retry_after_seconds).toBeLessThanOrEqual(high);
    }
    await using denied = replying(
      { error: { message: "no" } },
      { status: 403, headers: { "retry-after": "9" } },
    );
    expect(await failing({ connection: connectionTo({ base_url: denied.base_url }) })).toMatchObject({
      code: "forbidden",
      retry_after_seconds: null,
    });
  });

  const shapes: [string, { status: number; body: unknown }, CompletionFailure["code"], string][] = [
    [
      "OpenAI's",
      says(429, { error: { message: "Over quota", code: "insufficient_quota" } }),
      "quota_exceeded",
      "Over quota",
    ],
    [
      "Anthropic's credits",
      says(400, { error: { message: "Your credit balance is too low" } }),
      "quota_exceeded",
      "too low",
    ],
    [
      "Google's list",
      says(400, [{ error: { code: 400, message: "API key not valid." } }]),
      "invalid_credentials",
      "API key not valid",
    ],
    [
      "xAI's",
      says(400, { error: "Incorrect API key provided: xa***" }),
      "invalid_credentials",
      "Enter a valid one",
    ],
    [
      "Mistral's",
      says(400, { object: "error", message: "Invalid model: nope" }),
      "model_not_found",
      "Invalid model: nope",
    ],
    ["FastAPI's", says(422, { detail: "field required" }), "provider_error", "field required"],
    [
      "Ollama's",
      says(404, { error: { message: 'model "x" not found, try pulling it' } }),
      "model_not_found",
      "try pulling it",
    ],
    ["a bare string", says(500, { error: "out of memory" }), "provider_error", "out of memory"],
    [
      "OpenRouter's credits",
      says(402, { error: { message: "Insufficient credits" } }),
      "quota_exceeded",
      "Insufficient credits",
    ],
    [
      "a full context",
      says(400, { error: { message: "no", code: "context_length_exceeded" } }),
      "input_too_long",
      "larger context",
    ],
    [
      "a content rule",
      says(400, { error: { message: "no", code: "content_filter" } }),
      "content_filtered",
      "content rules",
    ],
    ["an unknown path", says(404, { detail: "Not Found" }), "bad_response", "ends in /v1"],
    [
      "an error inside of a 200",
      says(200, { error: { code: 429, message: "upstream is busy" } }),
      "rate_limited",
      "upstream is busy",
    ],
    [
      "an overloaded provider",
      says(529, { type: "error", error: { message: "Overloaded" } }),
      "provider_error",
      "Overloaded",
    ],
  ];
  test.each(shapes)("understands %s error", async (_, { status, body }, code, words) => {
    await using server = replying(body, { status });
    const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result.code).toBe(code);
    expect(result.message).toContain(words);
  });

  test("never repeats the key or a header's value, and shortens what the provider said to one line", async () => {
    const words = `key ${KEY} and team-secret-1\n\u0007${"x".repeat(5_000)}`;
    await using server = replying({ error: { message: words } }, { status: 500 });
    const headers = { "x-team": "team-secret-1" };
    const { message } = await failing({ connection: connectionTo({ base_url: server.base_url, headers }) });
    expect(message).toContain("key [key] and [key] xxx");
    expect(message.length).toBeLessThan(520);
    expect(message.includes("\n") || message.includes("\u0007")).toBe(false);
  });

  test("tokens used up before any text name the option that mends it", async () => {
    await using server = replying({ choices: [{ message: { content: "" }, finish_reason: "length" }] });
    const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ code: "bad_response", retryable: false });
    expect(result.message).toContain("--max-tokens");
  });

  const unfinished: [string, string, string, string][] = [
    ["thinking alone", "<think>Secret</think>\n", "stop", "answered without any text"],
    ["thinking without an end", "<think>Secret", "stop", "answered without any text"],
    ["thinking that was cut off", "<think>Secret", "length", "used up its tokens before it wrote any text"],
  ];
  test.each(unfinished)("%s is no answer", async (_, content, finish_reason, words) => {
    await using server = replying({ choices: [{ message: { content }, finish_reason }] });
    const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result.message).toContain(words);
    expect(result.message).not.toContain("Secret");
  });

  test("a refusal in place of a text carries the model's words", async () => {
    await using server = replying({
      choices: [{ message: { content: null, refusal: "I can't help with that." } }],
    });
    const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result.code).toBe("content_filtered");
    expect(result.message).toContain("I can't help with that.");
  });
});

describe("an answer that its server says broke off is not used", () => {
  const tool_calls = [{ id: "c1", type: "function", function: { name: "pay", arguments: "{}" } }];
  const HALVES: [string, object, object][] = [
    [
      "an error beside what there was of it",
      { finish_reason: "error", error: { code: 502, message: "Provider disconnected" } },
      { code: "provider_error", message: expect.stringContaining("Provider disconnected") },
    ],
    ...[
      "error",
      "abort",
      "insufficient_system_resource",
      "function_call_filter: MALFORMED_FUNCTION_CALL",
    ].map((finish_reason): [string, object, object] => [
      finish_reason,
      { finish_reason },
      { code: "bad_response", message: expect.stringContaining(`broke off`) },
    ]),
  ];
  test.each(HALVES)("%s: it may be tried again", async (_, end, expected) => {
    for (const message of [{ content: "Pay 100 EUR to account" }, { content: null, tool_calls }]) {
      await using server = replying({ choices: [{ message, ...end }] });
      const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
      expect(result).toMatchObject({ retryable: true, ...expected });
    }
  });

  test.each(["content_filter: SAFETY", "SAFETY"])("%s is a refusal", async (finish_reason) => {
    await using server = replying({ choices: [{ message: { content: "Pay" }, finish_reason }] });
    const result = await failing({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ code: "content_filtered", retryable: false });
  });

  test.each(["STOP", "end_turn", "eos", ""])("%p is a whole one", async (finish_reason) => {
    await using server = replying({ choices: [{ message: { content: "hi" }, finish_reason }] });
    const result = await ask({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ ok: true, text: "hi" });
  });
});

describe("answers that are good enough", () => {
  const oddities: [string, unknown, object][] = [
    [
      "no usage",
      { choices: [{ message: { content: "hi" } }] },
      { text: "hi", usage: null, model: "m-1", finish_reason: "stop" },
    ],
    ["a half usage", { ...chatCompletion("hi"), usage: { prompt_tokens: 3 } }, { text: "hi", usage: null }],
    [
      "a list of parts",
      {
        choices: [
          {
            message: {
              content: [
                { type: "thinking", thinking: [] },
                { type: "text", text: "hi" },
              ],
            },
          },
        ],
      },
      { text: "hi" },
    ],
    [
      "a text that was cut off",
      { choices: [{ message: { content: "hi" }, finish_reason: "length" }] },
      { text: "hi", finish_reason: "length" },
    ],
    [
      "a text that was cut off, in another word for it",
      { choices: [{ message: { content: "hi" }, finish_reason: "max_tokens" }] },
      { text: "hi", finish_reason: "length" },
    ],
    ["an error of null", { ...chatCompletion("hi"), error: null }, { text: "hi" }],
  ];
  test.each(oddities)("%s", async (_, body, expected) => {
    await using server = replying(body);
    const result = await ask({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ ok: true, ...expected });
  });

  test("JSON under another content type", async () => {
    await using server = startModelServer({
      reply: () =>
        new Response(JSON.stringify(chatCompletion("hi")), { headers: { "content-type": "text/plain" } }),
    });
    expect(await ask({ connection: connectionTo({ base_url: server.base_url }) })).toMatchObject({
      text: "hi",
    });
  });
});

describe("thinking that a server leaves in the answer is no part of it", () => {
  const thought: [string, string][] = [
    ["DeepSeek R1, QwQ, Qwen3", "<think>\nSecret: say hi.\n</think>\n\nhi"],
    ["Qwen3 that is not to think", "<think>\n\n</think>\n\nhi"],
    ["the opening mark is in the template", "Secret: say hi.\n</think>\n\nhi"],
    ["the opening mark is in the template, all on a line", "Secret: say hi.</think>hi"],
    ["the thinking has code", "Secret:\n```\nx\n```\n</think>\nhi"],
    ["several blocks", "<think>Secret</think>\n<think>Secret</think> hi"],
    ["Seed-OSS", "<seed:think>Secret</seed:think>hi"],
    ["Magistral", "[THINK]Secret[/THINK]hi"],
    ["Gemma", "<|channel>thought\nSecret\n<channel|>hi"],
    ["gpt-oss", "<|channel|>analysis<|message|>Secret<|end|><|start|>assistant<|channel|>final<|message|>hi"],
    ["a prompt that asks for it", "<thinking>Secret</thinking>\nhi"],
  ];
  test.each(thought)("%s", async (_, content) => {
    await using server = replying(chatCompletion(content));
    const result = await ask({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ ok: true, text: "hi" });
  });

  test.each([
    "Models write <think>, and end it with </think>.",
    "It ends with `</think>`.",
    "End it with </think> on a line of its own.",
    "The end of such a text:\n```\nso be it\n</think>\nyes\n```",
    "```html\n<think>\n</think>\n```",
    "The tag is\n<think>\nand then\n</think>\nhi",
    "  indented",
  ])("an answer about such marks is whole: %j", async (content) => {
    await using server = replying(chatCompletion(content));
    const result = await ask({ connection: connectionTo({ base_url: server.base_url }) });
    expect(result).toMatchObject({ ok: true, text: content });
  });

  test("a mark that the model was shown may be quoted, so that nobody has the answer cut with it", async () => {
    const content = "Two mails. Bob writes: well</think>done. Ann agrees.";
    await using server = replying(chatCompletion(content));
    const connection = connectionTo({ base_url: server.base_url });
    const shown = [{ role: "user" as const, content: "Sum up: well</think>done" }];
    expect(await ask({ connection, messages: shown })).toMatchObject({ ok: true, text: content });
    expect(await ask({ connection })).toMatchObject({ ok: true, text: "done. Ann agrees." });
  });

  test("four million characters of marks take no time", async () => {
    for (const content of [
      "<think></think>".repeat(260_000),
      "<think>".repeat(500_000),
      "</think> ".repeat(400_000),
    ]) {
      await using server = replying(chatCompletion(`${content}x`));
      const begun = performance.now();
      await ask({ connection: connectionTo({ base_url: server.base_url }) });
      expect(performance.now() - begun).toBeLessThan(1_000);
    }
  });
});

describe("a connection that cannot work is not tried", () => {
  test.each([
    ["a hosted kind without a key", { kind: "openai", api_key: "" }, "invalid_credentials", "API key"],
    ["a key with a line break", { api_key: "sk-\nabc" }, "invalid_credentials", "Paste it again"],
    ["a header with a line break", { headers: { "x-a": "b\r\nc" } }, "invalid_credentials", "Paste it again"],
    ["no base URL", { base_url: "" }, "unreachable", "base URL"],
    ["no model", { model: "" }, "model_not_found", "model name"],
  ] as [string, Partial<ModelConnection>, string, string][])("%s", async (_, changes, code, words) => {
    const result = await failing({ connection: connectionTo(changes) });
    expect(result.code).toBe(code as CompletionFailure["code"]);
    expect(result.message).toContain(words);
    expect(result.message).not.toContain("abc");
    expect(model.requests).toHaveLength(0);
  });
});

test("a mistake of our own is thrown, not dressed up as the provider's", async () => {
  const broken: SafeFetch = () => {
    throw new RangeError("our bug");
  };
  const thrown: unknown = await ask({ fetch: broken }).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(RangeError);
});

test("every kind has a label and, where it is hosted, an https address and a model", () => {
  for (const [kind, info] of Object.entries(MODEL_KINDS)) {
    expect(info.label).not.toBe("");
    expect(info.category).toBe("llm");
    const { base_url, model: name } = endpointOf(
      connectionTo({ kind: kind as ModelKind, base_url: "", model: "" }),
    );
    if (info.needs_credential) {
      expect(base_url).toStartWith("https://");
      expect(base_url).not.toEndWith("/");
      expect(name).not.toBe("");
    }
  }
});

test("a base URL that names a host alone means the path that its kind has; any other is taken as it is", () => {
  const baseOf = (kind: ModelKind, base_url: string): string =>
    endpointOf({ kind, base_url, model: "" }).base_url;
  expect(baseOf("anthropic", "https://api.anthropic.com")).toBe("https://api.anthropic.com/v1");
  expect(baseOf("google", "https://proxy.example:8443/")).toBe("https://proxy.example:8443/v1beta/openai");
  expect(baseOf("groq", "https://proxy.example/x")).toBe("https://proxy.example/x");
  expect(baseOf("openai_compatible", "http://models.lan:4000")).toBe("http://models.lan:4000");
});

test("the demo kind answers without a network, from the brief or else the last user message", async () => {
  const connection = connectionTo({ kind: "demo", api_key: "", base_url: "", model: "" });
  const refusing: SafeFetch = () => {
    throw new Error("the demo model must not use the network");
  };
  const result = await ask({ connection, fetch: refusing });
  expect(result).toMatchObject({ ok: true, model: "demo", usage: null, finish_reason: "stop" });
  expect(result.ok && result.text).toContain("**Instruction:** Hello");
  const brief = { instruction: "Summarize", content: "", attachments: ["a.pdf"], contexts: [] };
  const briefed = await ask({ connection, fetch: refusing, brief });
  expect(briefed.ok && briefed.text).toContain("a.pdf");
});

test("the client library is not loaded before the first call", async () => {
  const script = `
    await import("./src/ai/llm.ts");
    const loaded = Object.keys(require.cache).filter((file) => file.includes("node_modules/openai/"));
    console.log(JSON.stringify(loaded));
  `;
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: `${import.meta.dir}/../..`,
    stdout: "pipe",
  });
  expect(JSON.parse(await new Response(child.stdout).text())).toEqual([]);
});
