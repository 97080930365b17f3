import { expect, test } from "bun:test";
import fc from "fast-check";
import { canonicalJson } from "../../src/lib/canonical-json.ts";
import { hasMoreParts, isNestedDeeper, JsonMeter } from "../../src/lib/json-depth.ts";
import { testApp } from "../support/app.ts";
import { deskOf } from "./desk.ts";

const RUNS = { numRuns: 150 };
const DEMO = { llm: { kind: "demo" as const }, plans: { team: { route_per_minute: 0, inboxes: 1_000 } } };

/** Members that the three endpoints with a body know, and the kinds of value that each may be given. */
const MEMBERS: Record<string, string[]> = {
  "/v1/messages": ["instruction", "content", "inbox_id", "conversation_id", "attachments", "async"],
  "/inboxes": [
    "label",
    "prefix",
    "default_connection_id",
    "mcp_connection_ids",
    "reply_enabled",
    "allowlist_senders",
    "scope",
    "inbound_policy",
  ],
  "/connections": ["kind", "label", "name", "credential", "api_key", "model", "base_url", "url", "headers"],
};

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.string({ unit: "grapheme", maxLength: 30 }),
  fc.constantFrom(
    "\u{d800}",
    "\u{0}",
    "../x",
    "text/plain",
    "aGk=",
    "demo",
    "https://a.example",
    "@x.example",
  ),
  fc.uuid(),
);
const anyValue = fc.oneof(
  { weight: 3, arbitrary: anyText },
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(fc.record({ filename: anyText, content_type: anyText, data: anyText }, { requiredKeys: [] }), {
    maxLength: 3,
  }),
  fc.record({
    targets: fc.array(anyText, { maxLength: 3 }),
    autonomous: fc.array(anyText, { maxLength: 2 }),
  }),
  fc.dictionary(anyText, anyText, { maxKeys: 3 }),
);

test.each(Object.keys(MEMBERS))(
  "whatever is sent to POST %s is taken or refused, never a 5xx",
  async (path) => {
    await using t = await testApp(DEMO);
    const { ada, inbox_id } = await deskOf(t);
    const members = Object.fromEntries((MEMBERS[path] ?? []).map((name) => [name, anyValue]));
    await fc.assert(
      fc.asyncProperty(fc.record(members, { requiredKeys: [] }), async (body) => {
        const answer = await ada.post(path, path === "/v1/messages" ? { inbox_id, ...body } : body);
        expect(answer.status).toBeLessThan(500);
        if (answer.status === 422) expect(answer.body.errors[0].path).toStartWith("body");
        if (path === "/inboxes" && answer.status === 201) await ada.delete(`/inboxes/${answer.body.id}`);
        if (path === "/connections" && answer.status === 201)
          await ada.delete(`/connections/${answer.body.id}`);
      }),
      RUNS,
    );
  },
);

test("whatever stands in the query and in a path is taken or refused, never a 5xx", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const part = fc.oneof(anyText, fc.string({ maxLength: 20 })).map((text) =>
    // A lone surrogate cannot stand in an address.
    encodeURIComponent(text.toWellFormed()),
  );
  await fc.assert(
    fc.asyncProperty(part, part, async (one, two) => {
      for (const path of [
        `/messages?limit=${one}&cursor=${two}`,
        `/messages?${one}=${two}`,
        `/v1/messages/${one}x`,
        `/messages/${one}x/attachments/${two}x`,
        `/${one}/${two}`,
      ])
        expect([path, (await ada.get(path)).status < 500]).toEqual([path, true]);
    }),
    RUNS,
  );
});

test("members that nobody knows change nothing", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const known = new Set(Object.values(MEMBERS).flat());
  const unknown = fc.dictionary(
    anyText.filter((name) => !known.has(name)),
    fc.jsonValue({ maxDepth: 4 }),
    { maxKeys: 5 },
  );
  const before = (await ada.get("/inboxes")).body[0];
  await fc.assert(
    fc.asyncProperty(unknown, async (more) => {
      const patched = await ada.patch(`/inboxes/${inbox_id}`, { ...more, label: "Desk" });
      const { warnings, ...same } = patched.body;
      expect([patched.status, same]).toEqual([200, { ...before, label: "Desk" }]);
      expect(warnings ?? []).toHaveLength(Number(patched.headers.get("mailwright-warnings") ?? 0));
    }),
    RUNS,
  );
});

test("equal values have equal canonical texts, in whatever order their members stand", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(fc.nat()), (value, numbers) => {
      const shuffled = shuffle(value, () => numbers.next().value ?? 0);
      expect(canonicalJson(shuffled)).toBe(canonicalJson(value));
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("the depth of a JSON text is told as it is, whatever its strings hold", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: "binary" }), fc.nat({ max: 8 }), (value, limit) => {
      expect(isNestedDeeper(JSON.stringify(value), limit)).toBe(depthOf(value) > limit);
    }),
  );
  expect(isNestedDeeper('["[[[[", "\\\\", "\\"[[["]', 1)).toBe(false);
  expect(isNestedDeeper('{"a', 1)).toBe(false);
});

test("the parts of a JSON text are counted as they are, whatever its strings hold", () => {
  const parts = (value: unknown): number => {
    if (typeof value === "string") return 1;
    if (typeof value !== "object" || value === null) return 0;
    const members: unknown[] = Array.isArray(value) ? value : Object.entries(value).flat();
    const commas = Math.max(0, Object.keys(value).length - 1);
    return 2 + commas + members.reduce((sum: number, member) => sum + parts(member), 0);
  };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4, stringUnit: "binary" }), (given) => {
      const text = JSON.stringify(given);
      const count = parts(JSON.parse(text));
      expect(hasMoreParts(text, count)).toBe(false);
      if (count > 0) expect(hasMoreParts(text, count - 1)).toBe(true);
    }),
  );
});

test("JSON that comes in pieces is measured as its text is, whatever its strings hold", () => {
  const json = fc.jsonValue({ maxDepth: 6, stringUnit: "binary" });
  fc.assert(
    fc.property(json, fc.integer({ min: 1, max: 7 }), fc.constantFrom(0, 2), (value, size, indent) => {
      const text = JSON.stringify(value, null, indent);
      const bytes = new TextEncoder().encode(text);
      const meter = new JsonMeter();
      for (let at = 0; at < bytes.length; at += size)
        expect(meter.take(bytes.subarray(at, at + size))).toBe(false);
      expect(meter.deepest).toBe(depthOf(value));
      expect(hasMoreParts(text, meter.parts)).toBe(false);
      if (meter.parts > 0) expect(hasMoreParts(text, meter.parts - 1)).toBe(true);
    }),
  );
  const measure = (text: string): boolean => new JsonMeter().take(new TextEncoder().encode(text));
  expect(measure("[".repeat(200) + "]".repeat(200))).toBe(false);
  expect(measure("[".repeat(201) + "]".repeat(201))).toBe(true);
  expect(measure(`[${"1,".repeat(49_998)}1]`)).toBe(false);
  expect(measure(`[${"1,".repeat(49_999)}1]`)).toBe(true);
});

function shuffle(value: unknown, number: () => number): unknown {
  if (Array.isArray(value)) return value.map((member) => shuffle(member, number));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => ({
    entry: [name, shuffle(member, number)] as const,
    order: number(),
  }));
  return Object.fromEntries(entries.sort((a, b) => a.order - b.order).map(({ entry }) => entry));
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}
