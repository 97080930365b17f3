import { afterAll, expect, test } from "bun:test";
import { mintApiKey } from "../../src/lib/secrets.ts";
import { type Answer, type Caller, testApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { startAlteredServer } from "../support/oauth-altered-server.ts";
import { startStripe } from "../support/stripe-stand-in.ts";
import { type Access, ACCESS, TRACES } from "./access.ts";
import {
  allRoutes,
  closedRoutes,
  LOOPBACK,
  NO_DNS,
  offerEverything,
  OWNED,
  ownerOfEverything,
  send,
  sendAs,
} from "./every-route.ts";

/** Asks for authorisation, and has an authorization server. */
const mcpServer = startAlteredServer();
afterAll(() => mcpServer[Symbol.asyncDispose]());

/** What belongs to nobody, and is there for every account. */
const SHARED = new Set([
  "POST /recipes/:recipe_id/apply",
  "POST /integrations/:provider/connect",
  "POST /integrations/:provider/confirm",
]);

/** For administrators alone, of their own: see connection-models.test.ts. */
const ADMINISTERED = new Set(["POST /connections/:connection_id/pull"]);

/** Nothing would be served after it: it has tests of its own. */
const UNTRIED = new Set(["DELETE /auth/account"]);

test("every route that is not public answers 401 without a living key, whatever else is wrong with it", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as("ada@example.com");
  const headers: Record<string, string>[] = [
    {},
    { "x-api-key": "" },
    { "x-api-key": "   " },
    { "x-api-key": "nonsense" },
    { "x-api-key": mintApiKey().key },
    { "x-api-key": `${ada.key}x` },
    { "x-api-key": ada.key.slice(0, -1) },
    { authorization: `Bearer ${mintApiKey().key}` },
    { authorization: `Basic ${ada.key}` },
    // An explicit key is the only credential that counts, however good the other one is.
    { "x-api-key": mintApiKey().key, authorization: `Bearer ${ada.key}` },
    { "x-api-key": "", authorization: `Bearer ${ada.key}` },
  ];
  const bodies = new Set<string>();
  for (const route of closedRoutes(t)) {
    for (const credential of headers) {
      const answer = await t.request(route.path.replaceAll(/:\w+/g, "not-an-id"), {
        method: route.method,
        headers: { ...credential, "content-type": "application/json" },
        ...(route.method === "GET" ? {} : { body: "{ not json" }),
      });
      expect([route.name, answer.status]).toEqual([route.name, 401]);
      expect(answer.headers.get("www-authenticate")).toBe('ApiKey realm="mailwright"');
      bodies.add(withoutRequestId(answer));
    }
  }
  // One for who sent no key, and one for who sent a key that is not known here, whoever's it once was.
  expect([...bodies]).toHaveLength(2);
});

test("every route states who may use it, and nothing else is stated", async () => {
  await using t = await testApp();
  const names = allRoutes(t).map(({ name }) => name);
  expect(names.filter((name) => ACCESS[name] === undefined)).toEqual([]);
  expect(Object.keys(ACCESS).filter((name) => !names.includes(name))).toEqual([]);
});

test("every route on which a key may change something states what is noted of it, and whom it is mailed to", async () => {
  await using t = await testApp();
  const changing = allRoutes(t).filter(({ method, name }) => method !== "GET" && ACCESS[name] === "key");
  expect(changing.filter(({ name }) => TRACES[name] === undefined)).toEqual([]);
});

test("the public routes are the ones that say so", async () => {
  await using t = await testApp();
  const open: string[] = [];
  for (const route of allRoutes(t)) {
    const answer = await t.request(route.path.replaceAll(/:\w+/g, Bun.randomUUIDv7()), {
      method: route.method,
    });
    if (answer.status !== 401) open.push(route.name);
  }
  expect(open.sort()).toEqual(namedAs("public"));
});

test("an API key is refused on the routes for people, and on no other", async () => {
  await using stripe = startStripe(() => 0);
  // On Free a new key takes the place of this one.
  const plans = { default: "pro" } as const;
  await using t = await testApp({ llm: { kind: "demo" }, dns: NO_DNS, plans, ...stripe.config });
  const ada = await t.as("ada@example.com");
  const refused: string[] = [];
  for (const route of closedRoutes(t)) {
    if (UNTRIED.has(route.name)) continue;
    const answer = await send(t, ada, route, route.path.replaceAll(/:\w+/g, wordFor));
    if (answer.body?.code === "session_required") refused.push(route.name);
  }
  expect(refused.sort()).toEqual([...namedAs("session"), ...namedAs("fresh session")].sort());
});

test("what adds a way to sign in is for a session of the last ten minutes; an older one may do all the rest", async () => {
  await using everything = await offerEverything();
  const { t, ada } = everything;
  const old = await sessionOf(t, ada);
  t.clock.advance("11m");
  const fresh = await sessionOf(t, ada);
  const refused: string[] = [];
  for (const route of closedRoutes(t).filter(({ path }) => !path.includes(":"))) {
    if (UNTRIED.has(route.name)) continue;
    const answer = await sendAs(t, { cookie: old }, route, route.path);
    if (answer.status === 403) refused.push(route.name);
    else if (ACCESS[route.name] === "key")
      expect([route.name, answer.status < 300]).toEqual([route.name, true]);
  }
  // Those with an id: see admin-accounts.test.ts.
  expect(refused.sort()).toEqual(namedAs("fresh session").filter((name) => !name.includes(":")));
  for (const name of refused) {
    const [method = "", path = ""] = name.split(" ");
    const answer = await sendAs(t, { cookie: fresh }, { method, path, name }, path);
    expect([name, answer.status]).toEqual([name, name === "POST /admin/users" ? 201 : 200]);
  }
});

test("every route with an id is in the list of those that are somebody's", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  // What is for administrators is for all of them alike: see admin.test.ts.
  const owned = closedRoutes(t).filter(({ path }) => path.includes(":") && !path.startsWith("/admin/"));
  const names = owned.map(({ name }) => name).filter((name) => !SHARED.has(name) && !ADMINISTERED.has(name));
  expect(Object.keys(OWNED).toSorted()).toEqual(names.toSorted());
});

test.each(Object.entries(OWNED))(
  "%s answers another user's id exactly as one that nobody has, and serves the owner",
  async (name, make) => {
    await using t = await testApp({
      llm: { kind: "demo" },
      dns: NO_DNS,
      egress: LOOPBACK,
      webhooks: LOOPBACK,
    });
    const route = closedRoutes(t).find((one) => one.name === name);
    if (!route) throw new Error(`There is no route ${name}`);
    const bob = await t.as("bob@example.com");
    const owner = await ownerOfEverything(t, name, mcpServer.url);
    const path = make(owner);
    const as = async (caller: Caller): Promise<Record<string, string>> =>
      ACCESS[name] === "session" ? { cookie: await sessionOf(t, caller) } : { "x-api-key": caller.key };
    const foreign = await sendAs(t, await as(bob), route, path);
    const nowhere = route.path.replaceAll(/:\w+/g, () => Bun.randomUUIDv7());
    const unknown = await sendAs(t, await as(bob), route, nowhere);
    expect([foreign.status, foreign.body.code]).toEqual([404, "not_found"]);
    expect(withoutRequestId(foreign)).toEqual(withoutRequestId(unknown));
    expect(namesOf(foreign)).toEqual(namesOf(unknown));
    const own = await sendAs(t, await as(owner.caller), route, path);
    expect(own.status).toBeLessThan(300);
  },
);

test("the owner is served on every route without an id, with X-API-Key and with Bearer", async () => {
  await using everything = await offerEverything();
  const { t, ada } = everything;
  for (const route of closedRoutes(t).filter(({ path }) => !path.includes(":"))) {
    if (UNTRIED.has(route.name) || ACCESS[route.name] !== "key") continue;
    const own = await send(t, ada, route, route.path);
    expect([route.name, own.status < 300]).toEqual([route.name, true]);
  }
  const bearer = await t.request("/inboxes", { headers: { authorization: `bearer ${ada.key}` } });
  expect(bearer.status).toBe(200);
});

test("lists show nothing of another user", async () => {
  await using t = await testApp({ llm: { kind: "demo" }, egress: LOOPBACK, webhooks: LOOPBACK });
  await ownerOfEverything(t, "ada", mcpServer.url);
  const bob = await t.as("bob@example.com");
  expect((await bob.get("/inboxes")).body).toEqual([]);
  expect((await bob.get("/connections")).body).toEqual([]);
  expect((await bob.get("/custom-domains")).body).toEqual([]);
  expect((await bob.get("/contexts")).body).toEqual([]);
  expect((await bob.get("/v1/webhooks")).body).toEqual([]);
  expect((await bob.get("/messages")).body).toEqual({ items: [], next_cursor: null });
  expect((await bob.get("/conversations")).body).toEqual({ items: [], next_cursor: null });
});

test("an attachment is not found under another message of the same owner", async () => {
  await using t = await testApp({ llm: { kind: "demo" }, egress: LOOPBACK, webhooks: LOOPBACK });
  const owner = await ownerOfEverything(t, "ada", mcpServer.url);
  const other = await owner.caller.post("/v1/messages", { instruction: "Another" });
  const path = `/messages/${other.body.message_id}/attachments/${owner.attachment_id}`;
  expect((await owner.caller.get(path)).status).toBe(404);
});

/** In place of an id in a path. */
function wordFor(parameter: string): string {
  return parameter === ":provider" ? "notes" : Bun.randomUUIDv7();
}

function namedAs(access: Access): string[] {
  return Object.keys(ACCESS)
    .filter((name) => ACCESS[name] === access)
    .sort();
}

function withoutRequestId(answer: Answer): string {
  return JSON.stringify({ ...answer.body, request_id: "" });
}

function namesOf(answer: Answer): string[] {
  return [...answer.headers.keys()].sort();
}
