import { expect, test } from "bun:test";
import { MAX_TRIPS, MAX_WAITING } from "../../src/resources/accounts/trips.ts";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";
import { startStripe } from "../support/stripe-stand-in.ts";
import { startGuardedMcp } from "../support/oauth-mcp-server.ts";
import { comeBack } from "../support/consent.ts";
import { until } from "../support/until.ts";

const TOO_MANY = 3;
const ROOM = MAX_TRIPS + MAX_WAITING;

/** Has what an app asks others wait until it is let go; `count` says how much has begun. */
function holdRequests(t: TestApp) {
  const gate = Promise.withResolvers<void>();
  const { fetch: ask } = t.app;
  let begun = 0;
  t.app.fetch = async (url, init) => {
    begun += 1;
    await gate.promise;
    return ask(url, init);
  };
  return { letGo: () => gate.resolve(), count: () => begun };
}

/** Sends so many at once that three find no room; those are answered while the others wait. */
async function crowd(send: () => Promise<Answer>, letGo: () => void | Promise<void>): Promise<Answer[]> {
  const refused: Answer[] = [];
  const enough = Promise.withResolvers<void>();
  const all = Array.from({ length: ROOM + TOO_MANY }, async () => {
    const answer = await send();
    if (answer.status === 429 && refused.push(answer) === TOO_MANY) enough.resolve();
    return answer;
  });
  await Promise.race([enough.promise, Promise.all(all)]);
  await letGo();
  await Promise.all(all);
  return refused;
}

function expectRefusals(refused: Answer[]): void {
  expect([MAX_TRIPS, MAX_WAITING]).toEqual([5, 20]);
  expect(refused).toHaveLength(TOO_MANY);
  for (const { body, headers } of refused) {
    expect(body).toMatchObject({
      code: "rate_limited",
      detail: "25 requests of this account wait for the answers of other servers already.",
      fix: "Wait until some of them are answered.",
    });
    expect(headers.get("retry-after")).toBe("10");
  }
}

async function connected(caller: Caller, base_url: string): Promise<string> {
  return (await caller.post("/connections", { kind: "mcp", base_url })).body.id;
}

test.each([
  ["a test of a connection", (id: string) => `/connections/${id}/test`],
  ["a search for who lets people into a tool server", (id: string) => `/integrations/mcp/${id}/connect`],
] as const)(
  "%s is under way five times at once for one account, and nobody else waits for them",
  async (_name, pathOf) => {
    await using guarded = await startGuardedMcp();
    await using t = await testApp({ egress: { allow: ["127.0.0.1"] } });
    const [eve, ada] = [await t.as("eve@example.com"), await t.as("ada@example.com")];
    const path = pathOf(await connected(eve, guarded.url));
    const hers = pathOf(await connected(ada, guarded.url));
    const held = holdRequests(t);
    const of_ada: Promise<Answer>[] = [];
    const refused = await crowd(
      () => eve.post(path),
      async () => {
        expect(held.count()).toBe(MAX_TRIPS);
        of_ada.push(ada.post(hers));
        await until(() => held.count() !== MAX_TRIPS);
        held.letGo();
      },
    );
    expectRefusals(refused);
    expect((await of_ada[0])?.status).toBe(200);
    expect((await eve.post(path)).status).toBe(200);
  },
);

test("a code that an authorization server is to exchange is one of them, and is good for a second try", async () => {
  await using guarded = await startGuardedMcp();
  await using t = await testApp({ egress: { allow: ["127.0.0.1"] } });
  const ada = await t.as("ada@example.com");
  const id = await connected(ada, guarded.url);
  const { body } = await ada.post(`/integrations/mcp/${id}/connect`);
  const back = await guarded.agree(body.authorize_url);
  const held = holdRequests(t);
  const tests = Array.from({ length: ROOM }, () => ada.post(`/connections/${id}/test`));
  await until(() => held.count() >= MAX_TRIPS);
  const refused = await comeBack(t, ada, back);
  held.letGo();
  await Promise.all(tests);
  expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
  const arrival = await comeBack(t, ada, back);
  expect([arrival.status, arrival.body.includes("?connected=mcp")]).toEqual([200, true]);
});

test("pages of the payment provider are some of them", async () => {
  await using stripe = startStripe(() => 0);
  await using t = await testApp(stripe.config);
  const ada = await t.as("ada@example.com");
  const held = holdRequests(t);
  const refused = await crowd(() => ada.post("/billing/checkout", { plan: "pro" }), held.letGo);
  expectRefusals(refused);
  expect((await ada.post("/billing/checkout", { plan: "pro" })).status).toBe(200);
});

test("an endpoint of webhooks is looked up no more often at once", async () => {
  await using t = await testApp({});
  const ada = await t.as("ada@example.com");
  const gate = Promise.withResolvers<never[]>();
  t.app.resolver = () => gate.promise;
  const made = { url: "https://hooks.example.net/in", event_types: ["*"] };
  const refused = await crowd(
    () => ada.post("/v1/webhooks", made),
    () => gate.resolve([]),
  );
  expectRefusals(refused);
  const [endpoint] = (await ada.get("/v1/webhooks")).body;
  expect((await ada.patch(`/v1/webhooks/${endpoint.id}`, { url: made.url })).status).toBe(200);
});
