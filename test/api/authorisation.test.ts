import { expect, test } from "bun:test";
import { createHttp } from "../../src/http/server.ts";
import { mintApiKey } from "../../src/lib/secrets.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";

const PUBLIC = new Set(["GET /livez", "GET /readyz", "GET /openapi.json"]);

/** What each route with an id is tried on: the path of something that the owner has. */
const OWNED: Record<string, (owner: Owner) => string> = {
  "GET /v1/messages/:id": (owner) => `/v1/messages/${owner.message_id}`,
  "GET /messages/:message_id/attachments/:attachment_id": (owner) =>
    `/messages/${owner.message_id}/attachments/${owner.attachment_id}`,
  "PATCH /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "DELETE /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "PATCH /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "DELETE /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
};

const BODIES: Record<string, unknown> = {
  "POST /v1/messages": { instruction: "Summarise" },
  "POST /connections": { kind: "demo" },
};

interface Owner {
  caller: Caller;
  inbox_id: string;
  connection_id: string;
  message_id: string;
  attachment_id: string;
}

interface Route {
  method: string;
  path: string;
  name: string;
}

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
  expect([...bodies]).toHaveLength(1);
});

test("the public routes are the ones that are meant to be", async () => {
  await using t = await testApp();
  const open: string[] = [];
  for (const route of allRoutes(t)) {
    const answer = await t.request(route.path.replaceAll(/:\w+/g, Bun.randomUUIDv7()), {
      method: route.method,
    });
    if (answer.status !== 401) open.push(route.name);
  }
  expect(new Set(open)).toEqual(PUBLIC);
});

test("another user's id is answered exactly as one that nobody has, and the owner is served", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const bob = await t.as("bob@example.com");
  for (const route of closedRoutes(t).filter(({ path }) => path.includes(":"))) {
    const make = OWNED[route.name];
    if (!make) throw new Error(`${route.name} needs an entry in OWNED`);
    const owner = await ownerOfEverything(t, route.name);
    const path = make(owner);
    const foreign = await send(t, bob, route, path);
    const unknown = await send(
      t,
      bob,
      route,
      route.path.replaceAll(/:\w+/g, () => Bun.randomUUIDv7()),
    );
    expect([route.name, foreign.status, foreign.body.code]).toEqual([route.name, 404, "not_found"]);
    expect([route.name, withoutRequestId(foreign)]).toEqual([route.name, withoutRequestId(unknown)]);
    expect(namesOf(foreign)).toEqual(namesOf(unknown));
    const own = await send(t, owner.caller, route, path);
    expect([route.name, own.status < 300]).toEqual([route.name, true]);
  }
});

test("the owner is served on every route without an id, with X-API-Key and with Bearer", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  for (const route of closedRoutes(t).filter(({ path }) => !path.includes(":"))) {
    const own = await send(t, ada, route, route.path);
    expect([route.name, own.status < 300]).toEqual([route.name, true]);
  }
  const bearer = await t.request("/inboxes", { headers: { authorization: `bearer ${ada.key}` } });
  expect(bearer.status).toBe(200);
});

test("lists show nothing of another user", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  await ownerOfEverything(t, "ada");
  const bob = await t.as("bob@example.com");
  expect((await bob.get("/inboxes")).body).toEqual([]);
  expect((await bob.get("/connections")).body).toEqual([]);
  expect((await bob.get("/messages")).body).toEqual({ items: [], next_cursor: null });
});

test("an attachment is not found under another message of the same owner", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const owner = await ownerOfEverything(t, "ada");
  const other = await owner.caller.post("/v1/messages", { instruction: "Another" });
  const path = `/messages/${other.body.message_id}/attachments/${owner.attachment_id}`;
  expect((await owner.caller.get(path)).status).toBe(404);
});

function allRoutes(t: TestApp): Route[] {
  const { routes } = createHttp(t.app, { ready: async () => ({}) });
  return routes.map(({ method, path }) => ({ method, path, name: `${method} ${path}` }));
}

function closedRoutes(t: TestApp): Route[] {
  return allRoutes(t).filter((route) => !PUBLIC.has(route.name));
}

async function ownerOfEverything(t: TestApp, name: string): Promise<Owner> {
  const caller = await t.as(`${name.toLowerCase().replaceAll(/[^a-z]+/g, "-")}@example.com`);
  const inbox = await caller.post("/inboxes", {});
  const connection = await caller.post("/connections", { kind: "demo" });
  const message = await caller.post("/v1/messages", {
    instruction: "Read it",
    attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa("hello") }],
  });
  const listed = await caller.get("/messages");
  return {
    caller,
    inbox_id: inbox.body.id,
    connection_id: connection.body.id,
    message_id: message.body.message_id,
    attachment_id: listed.body.items[0].attachments[0].id,
  };
}

function send(t: TestApp, caller: Caller, route: Route, path: string): Promise<Answer> {
  const body = route.method === "GET" || route.method === "DELETE" ? undefined : (BODIES[route.name] ?? {});
  return t.request(path, {
    method: route.method,
    headers: { "x-api-key": caller.key, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

function withoutRequestId(answer: Answer): string {
  return JSON.stringify({ ...answer.body, request_id: "" });
}

function namesOf(answer: Answer): string[] {
  return [...answer.headers.keys()].sort();
}
