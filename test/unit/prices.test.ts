import { describe, expect, test } from "bun:test";
import { readAnswer } from "../../src/ai/llm-answer.ts";
import { costOf, estimateOf, priceOf } from "../../src/ai/prices.ts";
import { ConfigError, defaultConfig } from "../../src/config/config.ts";
import { moneyWords } from "../../src/lib/money.ts";

const PRICES = {
  mini: { model: "gpt-5.4-mini", input: 0.75, output: 4.5, cached_input: 0.075 },
  gpt: { model: "gpt-*", input: 2, output: 8 },
  all: { model: "*", input: 100, output: 100 },
  ours: { model: "*", kind: "openai_compatible" as const, input: 1, output: 1 },
};

function costs(prices: Parameters<typeof defaultConfig>[0] = { costs: { prices: PRICES } }) {
  return defaultConfig(prices).costs;
}

const at = (
  kind: "openai" | "openrouter" | "ollama" | "openai_compatible" | "demo",
  model = "",
  base_url = "",
) => ({
  kind,
  model,
  base_url,
});

describe("a price", () => {
  test.each([
    ["gpt-5.4-mini", 0.75],
    ["gpt-5.4-mini-2026", 2],
    ["gpt-5.4", 2],
    ["o9", 100],
  ])("of the model %s is that of the longest name that fits", (model, input) => {
    expect(priceOf(costs(), at("openai", model))).toMatchObject({ input });
  });

  test("of the model that a connection has by default counts where it names none", () => {
    expect(priceOf(costs(), at("openai"))).toMatchObject({ input: 0.75 });
  });

  test("for one kind counts for that alone, and before one for every kind", () => {
    expect(priceOf(costs(), at("openai_compatible", "x", "https://models.example.com"))).toMatchObject({
      input: 1,
    });
    expect(priceOf(costs(), at("openai", "x"))).toMatchObject({ input: 100 });
  });

  test.each([
    at("demo"),
    at("ollama", "llama3.2"),
    at("openai", "gpt-5.4", "http://127.0.0.1:4000/v1"),
    at("openai", "gpt-5.4", "http://[::1]:4000/v1"),
    at("openai", "gpt-5.4", "https://10.0.5.7/v1"),
    at("openai", "gpt-5.4", "http://ollama:11434/v1"),
    at("openai", "gpt-5.4", "http://models.lan/v1"),
  ])("of what runs here is nothing, unless a price names its kind: %o", (connection) => {
    expect(priceOf(costs(), connection)).toEqual({ input: 0, output: 0, cached_input: 0 });
    expect(costOf(costs(), connection, undefined)).toBe(0);
    const { kind } = connection;
    if (kind === "demo") return;
    const priced = costs({ costs: { prices: { own: { model: "*", kind, input: 3, output: 4 } } } });
    expect(priceOf(priced, connection)).toMatchObject({ input: 3 });
  });

  test("that nobody has set is not known, and so is the cost", () => {
    const none = defaultConfig().costs;
    expect(priceOf(none, at("openai", "gpt-5.4"))).toBeNull();
    expect(costOf(none, at("openai", "gpt-5.4"), { input_tokens: 10, output_tokens: 1 })).toBeNull();
  });
});

describe("what an answer has cost", () => {
  test("is its tokens at their price, those from the cache at theirs", () => {
    const bill = { input_tokens: 1_000, output_tokens: 100, cached_tokens: 600 };
    expect(costOf(costs(), at("openai", "gpt-5.4-mini"), bill)).toBe(400 * 0.75 + 600 * 0.075 + 450);
    expect(costOf(costs(), at("openai", "gpt-5.4"), bill)).toBe(2_000 + 800);
  });

  test("is what OpenRouter says, whatever the price is; of others nobody is believed", () => {
    const bill = { input_tokens: 1_000, output_tokens: 100, said_cost: 0.0123456 };
    expect(costOf(costs(), at("openrouter", "x"), bill)).toBe(12_346);
    expect(costOf(defaultConfig().costs, at("openrouter", "x"), bill)).toBe(12_346);
    expect(costOf(costs(), at("openai", "gpt-5.4"), bill)).toBe(2_800);
  });

  test("is not what OpenRouter says in dollars where another currency is counted in", () => {
    const bill = { input_tokens: 1_000, output_tokens: 100, said_cost: 1 };
    const euros = costs({ costs: { currency: "EUR", prices: PRICES } });
    expect(costOf(euros, at("openrouter", "x"), bill)).toBe(110_000);
    expect(
      costOf(defaultConfig({ costs: { currency: "EUR" } }).costs, at("openrouter", "x"), bill),
    ).toBeNull();
  });
});

test.each([
  [{ cost: 0.5 }, 0.5],
  [{ cost: 0.5, is_byok: false, cost_details: { upstream_inference_cost: 0.5 } }, 0.5],
  [{ cost: 0.01, is_byok: true, cost_details: { upstream_inference_cost: 0.5 } }, 0.51],
  [{ cost: -1 }, undefined],
  [{ cost: "0.5" }, undefined],
  [{ cost: 1e9 }, undefined],
])("of the cost in %o counts what is paid, with what a key of one's own is billed for", (more, said) => {
  const connection = { ...at("openrouter", "x"), id: "", api_key: "" };
  const usage = {
    prompt_tokens: 10,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 4 },
    ...more,
  };
  const choices = [{ message: { content: "Hi" }, finish_reason: "stop" }];
  expect(readAnswer({ choices, usage }, { connection, messages: [] }).usage).toEqual({
    input_tokens: 10,
    output_tokens: 1,
    cached_tokens: 4,
    ...(said === undefined ? {} : { said_cost: said }),
  });
});

test("an estimate reckons with every part of a request, and never with too little text", () => {
  const price = { input: 1, output: 10, cached_input: 1 };
  const user = { role: "user" as const, content: "x".repeat(3_000) };
  expect(estimateOf(price, { messages: [user], max_tokens: 100 })).toBe(1_000 + 1_000);
  expect(estimateOf(price, { messages: [user] })).toBe(1_000 + 40_960);
  const image = { content_type: "image/png", bytes: new Uint8Array() };
  expect(estimateOf(price, { messages: [{ ...user, images: [image] }], max_tokens: 0 })).toBe(3_000);
  const wide = { role: "user" as const, content: "語".repeat(1_000) };
  expect(estimateOf(price, { messages: [wide], max_tokens: 0 })).toBe(1_000);
  expect(estimateOf("said", { messages: [user] })).toBe(0);
});

describe("the configuration", () => {
  test.each([
    [{ model: "gpt-*-mini", input: 1, output: 1 }, "costs.prices.a.model must be the name of a model"],
    [{ model: "x", input: -1, output: 1 }, "costs.prices.a.input must be an amount of money from 0"],
    [{ model: "x", input: 1 }, "costs.prices.a needs output, which is not given"],
    [{ model: "x", input: 1, output: 1, kind: "demo" }, "costs.prices.a.kind must be"],
  ])("%o is refused", (a, words) => {
    expect(() => defaultConfig({ costs: { prices: { a } } } as never)).toThrow(words);
  });

  test("a price of 0 is one", () => {
    const free = costs({ costs: { prices: { a: { model: "x", input: 0, output: 0 } } } });
    expect(priceOf(free, at("openai", "x"))).toMatchObject({ input: 0, output: 0 });
  });

  test("two prices of the same model are refused, and so is a currency in words", () => {
    const a = { model: "x", input: 1, output: 1 };
    expect(() => defaultConfig({ costs: { prices: { a, b: a } } })).toThrow(ConfigError);
    expect(() => defaultConfig({ costs: { currency: "dollars" } })).toThrow("three capital letters");
  });
});

test("money is shown with two digits, and with more where it takes them", () => {
  expect([12_500_000, 1_234_567_890, 1_040, 0].map((money) => moneyWords(money, "USD"))).toEqual([
    "12.50 USD",
    "1,234.56789 USD",
    "0.00104 USD",
    "0.00 USD",
  ]);
});
