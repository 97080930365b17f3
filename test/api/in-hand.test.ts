import { expect, test } from "bun:test";
import { createHttp, startHttp } from "../../src/api.ts";
import { MAX_IN_HAND } from "../../src/lib/paced-turns.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { storeConversations, storeMessages } from "./archive.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";

const UNLIMITED = { plans: { team: { api_per_minute: 0 } } };
const HEALTH = { ready: async () => ({}) };

/** An account of which every list is long, and a number of requests for one of them. */
async function houseOf(t: TestApp, email: string): Promise<{ caller: Caller; conversation_id: string }> {
  const caller = await t.as(email);
  const [conversation] = await storeConversations(t, caller.user, [{}]);
  const now = t.app.now();
  const messages = Array.from({ length: 4_000 }, (_, index) => ({
    created: now - Math.floor((index * 300 * DAY_SECONDS) / 4_000),
    result: "All work and no play. ".repeat(index < 200 ? 450 : 1),
    conversation_id: index < 200 ? (conversation?.id ?? null) : null,
  }));
  await storeMessages(t, caller.user, messages);
  return { caller, conversation_id: conversation?.id ?? "" };
}

type House = Awaited<ReturnType<typeof houseOf>>;

const LONG: [string, (house: House) => string][] = [
  ["GET /messages", () => "/messages?limit=100"],
  ["a search", () => "/messages?limit=100&q=nowhere"],
  ["GET /messages with filters", () => "/messages?limit=100&status=done&source=api"],
  ["GET /conversations/{id}", ({ conversation_id }) => `/conversations/${conversation_id}`],
  [
    "GET /usage",
    ({ caller: { user } }) => `/usage?until=${user.created}&since=${user.created - 300 * DAY_SECONDS}`,
  ],
];

test.each(LONG)(
  "%s that one account sends many of is answered in turn with what others ask",
  async (_name, pathOf) => {
    await using t = await testApp(UNLIMITED);
    const eve = await houseOf(t, "eve@example.com");
    const ada = await houseOf(t, "ada@example.com");
    const answered: string[] = [];
    const ask = async ({ caller }: House, path: string, name: string) => {
      const { status } = await caller.get(path);
      answered.push(name);
      return status;
    };
    const enemies = Array.from({ length: 40 }, () => ask(eve, pathOf(eve), "eve"));
    const friends = [ask(ada, "/auth/me", "ada"), ask(ada, pathOf(ada), "ada")];
    const statuses = await Promise.all([...enemies, ...friends]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    // Between her two, and before each of them, one of Eve's may come, and one may be under way.
    expect(answered.slice(0, 10).filter((name) => name === "ada")).toHaveLength(2);
  },
);

test("contexts that one account writes many of are written in turn with those of others", async () => {
  await using t = await testApp(UNLIMITED);
  const [eve, ada] = [await t.as("eve@example.com"), await t.as("ada@example.com")];
  const context = { title: "Long", kind: "instruction", body: "w ".repeat(100_000) };
  const made = [await eve.post("/contexts", context), await ada.post("/contexts", context)];
  const answered: string[] = [];
  const write = async (caller: Caller, id: string, name: string) => {
    const { status } = await caller.patch(`/contexts/${id}`, { title: name });
    answered.push(name);
    return status;
  };
  const enemies = Array.from({ length: 40 }, () => write(eve, made[0]?.body.id, "eve"));
  const statuses = await Promise.all([...enemies, write(ada, made[1]?.body.id, "ada")]);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(answered.indexOf("ada")).toBeLessThan(10);
});

test("over a socket too, another account's request overtakes them", async () => {
  await using t = await testApp({ ...UNLIMITED, server: { listen: "127.0.0.1:0" } });
  const { caller: eve } = await houseOf(t, "eve@example.com");
  const ada = await t.as("ada@example.com");
  await using door = await startHttp(t.app, HEALTH);
  let waiting = 0;
  const ask = async (path: string, caller: Caller): Promise<number> => {
    waiting += 1;
    const response = await fetch(`${door.url}${path}`, { headers: { "x-api-key": caller.key } });
    await response.arrayBuffer();
    waiting -= 1;
    return response.status;
  };
  const enemies = Array.from({ length: 60 }, () => ask("/messages?limit=100", eve));
  await Promise.race(enemies);
  const of_eve = waiting;
  expect(await ask("/auth/me", ada)).toBe(200);
  expect(of_eve - waiting).toBeLessThan(10);
  expect(new Set(await Promise.all(enemies))).toEqual(new Set([200]));
});

test("beyond 64 long ones in hand an account hears 429 with its reason, and goes on when they are done", async () => {
  await using t = await testApp(UNLIMITED);
  const { caller: eve } = await houseOf(t, "eve@example.com");
  const { caller: ada } = await houseOf(t, "ada@example.com");
  // A search, which takes several times as long as what counts as long, on a fast machine too.
  const path = "/messages?limit=100&q=nowhere";
  for (let count = 0; count < 5; count++) await eve.get(path);
  const many = Promise.all(Array.from({ length: 200 }, () => eve.get(path)));
  const others = Promise.all(Array.from({ length: 20 }, () => ada.get(path)));
  const answers = await many;
  const taken = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 429);
  expect(taken.length + refused.length).toBe(200);
  expect(taken.length).toBeGreaterThanOrEqual(MAX_IN_HAND);
  expect(taken.length).toBeLessThan(MAX_IN_HAND + 10);
  for (const { body, headers } of refused) {
    expect(body).toMatchObject({ code: "rate_limited", status: 429 });
    expect(body.detail).toBe("64 requests of this account are in hand already.");
    expect(headers.get("retry-after")).toBe("1");
  }
  expect(new Set((await others).map(({ status }) => status))).toEqual(new Set([200]));
  expect((await eve.get(path)).status).toBe(200);
});

test("requests that take no time are all answered, however many come at once", async () => {
  await using t = await testApp(UNLIMITED);
  const ada = await t.as("ada@example.com");
  for (let count = 0; count < 5; count++) await ada.get("/auth/me");
  const answers = await Promise.all(Array.from({ length: 500 }, () => ada.get("/auth/me")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test("what fails, is refused or is not there gives its room back", async () => {
  await using t = await testApp(UNLIMITED);
  const { caller: eve } = await houseOf(t, "eve@example.com");
  const http = createHttp(t.app, HEALTH);
  const ask = (path: string, method: string) =>
    http.handle(new Request(`http://mw.test${path}`, { method, headers: { "x-api-key": eve.key } }));
  const id = Bun.randomUUIDv7();
  for (const path of [
    `/messages/${id}`,
    "/messages?limit=0",
    "/messages?cursor=x",
    "/admin/users",
    "/messages",
  ])
    for (const method of ["GET", "HEAD", "OPTIONS"])
      await Promise.all(Array.from({ length: 10 }, () => ask(path, method)));
  // Were one of them still in hand, so many long ones would be too many.
  // A search, which takes several times as long as what counts as long, on a fast machine too.
  const path = "/messages?limit=100&q=nowhere";
  for (let count = 0; count < 5; count++) await eve.get(path);
  const answers = await Promise.all(
    Array.from({ length: MAX_IN_HAND }, () => eve.get("/messages?limit=100")),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});
