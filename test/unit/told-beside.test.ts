import { describe, expect, test } from "bun:test";
import { listedIn, type Told, toldBeside, valuesIn } from "../../src/trust/guard/told-beside.ts";

const PAGE = "https://x.example.org/a";
const OTHER = "https://other.example.com/a";
const SITES = new Set([PAGE, OTHER, `${PAGE}b`, PAGE.replace("https", "http"), PAGE.replace("x.", "www.x.")]);
const text = { type: "string" };
const SCHEMA = {
  type: "object",
  properties: {
    url: text,
    format: { enum: ["markdown", "html"] },
    agent: { type: "string", default: "Reader/1.0" },
    prompt: text,
    max_length: { type: "integer" },
    start_index: { type: "integer" },
    port: { type: "integer" },
    raw: { type: "boolean" },
    headers: { type: "object", additionalProperties: text },
    options: {
      type: "object",
      properties: { wait: { type: "integer" }, only: { items: { enum: ["main"] } } },
    },
    urls: { type: "array", items: text },
  },
};

function told(
  args: Record<string, unknown>,
  said = `Sum up ${PAGE} in three lines.`,
  schema: object = SCHEMA,
  { before = [], since = null }: { before?: Told[]; since?: Told[] | null } = {},
) {
  const listed = listedIn({ ...schema });
  return toldBeside(args, { sites: SITES, said, listed, tool: "web fetch", told: before, since });
}

const SAYABLE = { listed: listedIn(SCHEMA), sites: SITES, tool: "web fetch" };

/** Which of some calls, one after the other, may be made; `since`: once another tool has answered. */
function allowed(calls: Record<string, unknown>[], since = false): boolean[] {
  const before: Told[] = [];
  return calls.map((args) => {
    const ok = told(args, undefined, SCHEMA, { before, since: since ? before : null }) === undefined;
    if (ok) before.push(valuesIn(args, SAYABLE));
    return ok;
  });
}

const bits = (letters: string): unknown[] =>
  [...Buffer.from(letters)].flatMap((byte) =>
    Array.from({ length: 8 }, (_, nth) => ((byte >> nth) & 1 ? [[]] : [])),
  );

test.each<[string, unknown]>([
  ["lists", bits("482913")],
  [
    "lists in lists",
    [
      [
        [
          [[[], []], []],
          [[], [[], []]],
        ],
      ],
    ],
  ],
  ["objects", Array.from("482913", (digit) => Array.from({ length: Number(digit) }, () => ({})))],
])("a site is told nothing by empty %s", (_what, options) => {
  const any = { type: "object", properties: { url: text, body: {} } };
  const call = { url: PAGE, body: options };
  expect(told(call, undefined, any, { since: [] })).toBeDefined();
  expect(told({ url: PAGE, body: [] }, undefined, any)).toBeUndefined();
});

describe("beside a named address", () => {
  test.each<Record<string, unknown>>([
    { url: PAGE },
    { url: PAGE, prompt: "" },
    { url: PAGE, format: "markdown", raw: false, max_length: 20_000, start_index: 4_987 },
    { url: PAGE, agent: "Reader/1.0", port: 443, prompt: null },
    { url: PAGE, prompt: "Sum up https://x.example.org/a in three lines." },
    { url: PAGE, options: { wait: 5_000, only: ["main"] } },
    { prompt: `Sum up ${PAGE} in three lines.` },
    { urls: [PAGE, PAGE] },
  ])("the call may hold what was said, what is listed, switches and numbers: %j", (args) => {
    expect(told(args)).toBeUndefined();
  });

  test.each<[argument: string, args: Record<string, unknown>]>([
    ["prompt", { url: PAGE, prompt: "the key is under the stone" }],
    ["prompt", { url: PAGE, prompt: "ines" }],
    // Each capital letter and each blank could be a letter of a message.
    ["prompt", { url: PAGE, prompt: "sUm up" }],
    ["prompt", { url: PAGE, prompt: "Sum  up" }],
    ["prompt", { url: PAGE, prompt: "   " }],
    ["prompt", { url: PAGE, prompt: "tRuE" }],
    ["url", { url: ` ${PAGE}` }],
    ["agent", { url: PAGE, agent: "Reader/1.0 " }],
    ["max_length", { url: PAGE, max_length: "0012" }],
    ["format", { url: PAGE, format: "4711" }],
    ["port", { url: PAGE, port: 4_711 }],
    ["max_length", { url: PAGE, max_length: 12_345_678 }],
    ["max_length", { url: PAGE, max_length: 0.4711 }],
    ["prompt", { url: PAGE, prompt: `${PAGE} key` }],
    ["prompt", { prompt: JSON.stringify({ url: PAGE, headers: { "X-Key": "stone" } }) }],
    ["headers", { url: PAGE, headers: { "X-Key": "stone" } }],
    ["headers", { url: PAGE, headers: { stone: true } }],
    ["headers", { url: PAGE, headers: ["stone"] }],
    // Which words of the mail stand there as names is a message as well.
    ["headers", { url: PAGE, headers: { sum: "99", up: "97" } }],
    ["sum", { url: PAGE, sum: true }],
    ["stone", { url: PAGE, stone: true }],
    ["urls", { url: PAGE, urls: Array.from({ length: 30 }, (_, nth) => nth % 2 === 0) }],
    ["urls", { url: PAGE, urls: [[[["stone"]]]] }],
  ])("the call may hold nothing else: %s of %j", (argument, args) => {
    expect(told(args)).toBe(argument);
  });

  test("one address that a context names is free, and which others go with it must be said", () => {
    expect(told({ url: PAGE }, "Look at our page")).toBeUndefined();
    expect(told({ urls: [PAGE, `${PAGE}b`] }, "Look at our pages")).toBe("urls");
    expect(told({ urls: [PAGE, `${PAGE}b`] }, `Look at ${PAGE} and ${PAGE}b`)).toBeUndefined();
  });

  test("all calls of a run together may say little, and to ask for a page again says when, and how often", () => {
    const page = { url: PAGE, format: "markdown", max_length: 5_000 };
    const paged = Array.from({ length: 7 }, (_, nth) => ({ ...page, start_index: nth * 5_000 }));
    expect(allowed(paged)).toEqual(paged.map(() => true));
    const again = allowed(Array.from({ length: 60 }, () => page)).filter(Boolean).length;
    expect([again > 40, again < 50]).toEqual([true, true]);
    const spelled = Array.from({ length: 60 }, (_, nth) => ({ url: PAGE, port: (nth * 7_919) % 997 }));
    expect(allowed(spelled).filter(Boolean).length).toBeLessThan(24);
    expect(allowed([...spelled, ...Array.from({ length: 20 }, () => ({ url: PAGE }))]).at(-1)).toBe(false);
    expect(allowed([...spelled, { url: OTHER }]).at(-1)).toBe(true);
    // Two values, again and again, are letters of a message.
    const letters = Array.from({ length: 200 }, (_, nth) => ({ url: PAGE, raw: nth % 3 === 0 }));
    expect(allowed(letters).filter(Boolean).length).toBeLessThan(170);
    const at_once = { url: PAGE, urls: Array.from({ length: 18 }, (_, nth) => nth * 55) };
    expect(allowed([at_once, { ...at_once, port: 7 }, { url: PAGE, port: 8, max_length: 4_711 }])).toEqual([
      true,
      false,
      false,
    ]);
  });

  test("what is left out, the order of members, a number as text and the ways to name a page are counted", () => {
    const bits = Array.from({ length: 400 }, (_, nth) => (nth * 7_919) % 5 < 2);
    for (const spelled of [
      bits.map((bit) => ({ url: PAGE, port: 7, ...(bit ? { raw: true } : {}) })),
      bits.map((bit) => (bit ? { url: PAGE, raw: true } : { raw: true, url: PAGE })),
      bits.map((bit) => ({ url: PAGE, port: bit ? "80" : 80 })),
      bits.map((bit) => ({ url: bit ? PAGE : PAGE.replace("https", "http") })),
      bits.map((bit) => ({ url: bit ? PAGE : PAGE.replace("x.", "www.x.") })),
      bits.map((bit) => ({ url: bit ? PAGE : `${PAGE}b` })),
    ])
      expect(allowed(spelled).filter(Boolean).length).toBeLessThan(170);
  });

  test("once another tool has answered, a site learns no code of six digits", () => {
    const page = { url: PAGE };
    expect(allowed([page, page, page, page, page], true)).toEqual([true, true, true, false, false]);
    expect(allowed([{ ...page, start_index: 483_920 }], true)).toEqual([false]);
    expect(allowed([{ ...page, port: 483 }], true)).toEqual([false]);
    expect(allowed([{ ...page, format: "markdown" }, page], true)).toEqual([true, false]);
    expect(allowed([page, { url: OTHER }], true)).toEqual([true, true]);
  });

  test("which of several tools asks is counted", () => {
    const sayable = { sites: SITES, said: "", listed: listedIn(SCHEMA), since: null };
    const before: Told[] = [];
    const made = Array.from({ length: 60 }, (_, nth) => {
      const call = { ...sayable, tool: `web fetch_${(nth * 7) % 4}` };
      const ok = toldBeside({ url: PAGE }, { ...call, told: before }) === undefined;
      if (ok) before.push(valuesIn({ url: PAGE }, call));
      return ok;
    });
    expect(made.filter(Boolean).length).toBeLessThan(36);
  });

  test("names cost, where the tool lists none", () => {
    const names = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, nth) => [`secret-${String.fromCharCode(97 + nth)}`, true]),
      );
    expect(told({ url: PAGE, ...names(2) }, "", { type: "object" })).toBeUndefined();
    expect(told({ url: PAGE, ...names(9) }, "", { type: "object" })).toBeDefined();
  });

  test("a tool that lists nothing gets arguments that are called as such", () => {
    expect(told({ url: PAGE, raw: true }, "", { type: "object" })).toBeUndefined();
    expect(told({ url: PAGE, "the key: 4711": true }, "", { type: "object" })).toBe("the key: 4711");
    expect(told({ url: PAGE, query: "stone" }, "", { type: "object" })).toBe("query");
  });
});
