import { afterAll, expect, test } from "bun:test";
import { startSession } from "../../src/accounts/sessions.ts";
import { createHttp } from "../../src/http/server.ts";
import { mintApiKey } from "../../src/lib/secrets.ts";
import { storeRawMail } from "../../src/messages/accept.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { startLooseServer } from "../support/oauth-loose-server.ts";
import { startStripe } from "../support/stripe-stand-in.ts";
import { type Access, ACCESS } from "./access.ts";
import { storeMessages } from "./archive.ts";

/** What belongs to nobody, and is there for every account. */
const SHARED = new Set([
  "POST /recipes/:recipe_id/apply",
  "POST /integrations/:provider/connect",
  "POST /integrations/:provider/confirm",
]);

/** What each route with an id is tried on: the path of something that the owner has. */
const OWNED: Record<string, (owner: Owner) => string> = {
  "GET /v1/messages/:id": (owner) => `/v1/messages/${owner.message_id}`,
  "GET /messages/:message_id": (owner) => `/messages/${owner.message_id}`,
  "GET /messages/:message_id/attachments/:attachment_id": (owner) =>
    `/messages/${owner.message_id}/attachments/${owner.attachment_id}`,
  "GET /messages/:message_id/raw": (owner) => `/messages/${owner.failed_mail_id}/raw`,
  "POST /messages/:message_id/retry": (owner) => `/messages/${owner.failed_mail_id}/retry`,
  "GET /conversations/:conversation_id": (owner) => `/conversations/${owner.conversation_id}`,
  "GET /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "PATCH /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "DELETE /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "POST /inboxes/:inbox_id/rotate": (owner) => `/inboxes/${owner.inbox_id}/rotate`,
  "GET /inboxes/:inbox_id/vcard": (owner) => `/inboxes/${owner.inbox_id}/vcard`,
  "POST /inboxes/:inbox_id/email-vcard": (owner) => `/inboxes/${owner.inbox_id}/email-vcard`,
  "POST /inboxes/:inbox_id/test": (owner) => `/inboxes/${owner.inbox_id}/test`,
  "GET /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "PATCH /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "DELETE /auth/sessions/:session_id": (owner) => `/auth/sessions/${owner.session_id}`,
  "DELETE /auth/api-keys/:key_id": (owner) => `/auth/api-keys/${owner.key_id}`,
  "DELETE /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "GET /contexts/:context_id": (owner) => `/contexts/${owner.context_id}`,
  "PATCH /contexts/:context_id": (owner) => `/contexts/${owner.context_id}`,
  "DELETE /contexts/:context_id": (owner) => `/contexts/${owner.context_id}`,
  "POST /custom-domains/:domain_id/verify": (owner) => `/custom-domains/${owner.domain_id}/verify`,
  "DELETE /custom-domains/:domain_id": (owner) => `/custom-domains/${owner.domain_id}`,
  "POST /connections/:connection_id/test": (owner) => `/connections/${owner.connection_id}/test`,
  "POST /integrations/mcp/:connection_id/connect": (owner) =>
    `/integrations/mcp/${owner.mcp_connection_id}/connect`,
  "PATCH /v1/webhooks/:id": (owner) => `/v1/webhooks/${owner.webhook_id}`,
  "DELETE /v1/webhooks/:id": (owner) => `/v1/webhooks/${owner.webhook_id}`,
  "POST /v1/webhooks/:id/test": (owner) => `/v1/webhooks/${owner.webhook_id}/test`,
  "GET /v1/webhooks/:id/secret": (owner) => `/v1/webhooks/${owner.webhook_id}/secret`,
  "POST /v1/webhooks/:id/rotate-secret": (owner) => `/v1/webhooks/${owner.webhook_id}/rotate-secret`,
  "GET /v1/webhooks/:id/deliveries": (owner) => `/v1/webhooks/${owner.webhook_id}/deliveries`,
  "GET /v1/webhooks/:id/deliveries/:delivery_id": (owner) =>
    `/v1/webhooks/${owner.webhook_id}/deliveries/${owner.delivery_id}`,
  "POST /v1/webhooks/:id/deliveries/:delivery_id/retry": (owner) =>
    `/v1/webhooks/${owner.webhook_id}/deliveries/${owner.delivery_id}/retry`,
  "POST /v1/webhooks/:id/replay": (owner) => `/v1/webhooks/${owner.webhook_id}/replay`,
};

/** Nothing would be served after it: it has tests of its own. */
const UNTRIED = new Set(["DELETE /auth/account"]);

const CONTEXT = { title: "Brand voice", body: "Plain words.", kind: "instruction" };

const CONFIRMATION = new URLSearchParams({ code: "x", state: "x", proof: "x" });

const BODIES: Record<string, unknown> = {
  "POST /integrations/:provider/confirm": CONFIRMATION,
  "POST /integrations/mcp/confirm": CONFIRMATION,
  "POST /v1/messages": { instruction: "Summarise" },
  "POST /connections": { kind: "demo" },
  "POST /custom-domains": { domain: "ai.acme.test" },
  "POST /contexts": CONTEXT,
  "POST /contexts/upload": markdownForm(),
  "POST /billing/checkout": { plan: "team" },
  "POST /auth/set-password": { password: "quiet river 42" },
  // An address, so that no name server is asked.
  "POST /v1/webhooks": { url: "https://93.184.216.34/hook", event_types: ["*"] },
  "POST /v1/webhooks/:id/replay": { since: 0 },
};

/** Asks for authorisation, and has an authorization server. */
const mcpServer = startLooseServer();
const LOOPBACK = { allow: ["127.0.0.1"] };
afterAll(() => mcpServer[Symbol.asyncDispose]());

/** A port where nobody listens: nothing here may ask the world. */
const NO_DNS = { servers: ["127.0.0.1:9"] };

interface Owner {
  caller: Caller;
  key_id: string;
  session_id: string;
  inbox_id: string;
  connection_id: string;
  mcp_connection_id: string;
  domain_id: string;
  context_id: string;
  message_id: string;
  attachment_id: string;
  conversation_id: string;
  failed_mail_id: string;
  webhook_id: string;
  delivery_id: string;
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

test("every route states who may use it, and nothing else is stated", async () => {
  await using t = await testApp();
  const names = allRoutes(t).map(({ name }) => name);
  expect(names.filter((name) => ACCESS[name] === undefined)).toEqual([]);
  expect(Object.keys(ACCESS).filter((name) => !names.includes(name))).toEqual([]);
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
  await using t = await testApp({ llm: { kind: "demo" }, dns: NO_DNS, ...stripe.config });
  const ada = await t.as("ada@example.com");
  const refused: string[] = [];
  for (const route of closedRoutes(t)) {
    if (UNTRIED.has(route.name)) continue;
    const answer = await send(t, ada, route, route.path.replaceAll(/:\w+/g, wordFor));
    if (answer.body?.code === "session_required") refused.push(route.name);
  }
  expect(refused.sort()).toEqual([...namedAs("session"), ...namedAs("fresh session")].sort());
});

/** A server on which every route can be served, and an account with an inbox. */
async function offerEverything() {
  await using built = new AsyncDisposableStack();
  const stripe = built.use(startStripe(() => 0));
  const t = built.use(
    await testApp({ llm: { kind: "demo" }, dns: NO_DNS, plans: { default: "pro" }, ...stripe.config }),
  );
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  const stack = built.move();
  return { t, ada, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

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
  expect(refused.sort()).toEqual(namedAs("fresh session"));
  for (const name of refused) {
    const [method = "", path = ""] = name.split(" ");
    const answer = await sendAs(t, { cookie: fresh }, { method, path, name }, path);
    expect([name, answer.status]).toEqual([name, 200]);
  }
});

test("another user's id is answered exactly as one that nobody has, and the owner is served", async () => {
  await using t = await testApp({ llm: { kind: "demo" }, dns: NO_DNS, egress: LOOPBACK, webhooks: LOOPBACK });
  const bob = await t.as("bob@example.com");
  // What is for administrators is for all of them alike: see admin.test.ts.
  const owned = closedRoutes(t).filter(({ path }) => path.includes(":") && !path.startsWith("/admin/"));
  for (const route of owned.filter(({ name }) => !SHARED.has(name))) {
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
  await ownerOfEverything(t, "ada");
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
  return allRoutes(t).filter((route) => ACCESS[route.name] !== "public");
}

/** In place of an id in a path. */
function wordFor(parameter: string): string {
  return parameter === ":provider" ? "notes" : Bun.randomUUIDv7();
}

function namedAs(access: Access): string[] {
  return Object.keys(ACCESS)
    .filter((name) => ACCESS[name] === access)
    .sort();
}

async function ownerOfEverything(t: TestApp, name: string): Promise<Owner> {
  const caller = await t.as(`${name.toLowerCase().replaceAll(/[^a-z]+/g, "-")}@example.com`);
  const inbox = await caller.post("/inboxes", {});
  const connection = await caller.post("/connections", { kind: "demo" });
  const mcp = await caller.post("/connections", { kind: "mcp", base_url: mcpServer.url });
  const domain = await caller.post("/custom-domains", { domain: "ai.acme.test" });
  const context = await caller.post("/contexts", CONTEXT);
  const message = await caller.post("/v1/messages", {
    instruction: "Read it",
    attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa("hello") }],
  });
  // Last, so that it is told of nothing but its test.
  const webhook = await caller.post("/v1/webhooks", { url: mcpServer.url, event_types: ["*"] });
  const tested = await caller.post(`/v1/webhooks/${webhook.body.id}/test`);
  const listed = await caller.get("/messages");
  const keys = await caller.get("/auth/api-keys");
  return {
    caller,
    key_id: keys.body[0].id,
    session_id: await signInTo(t, caller),
    inbox_id: inbox.body.id,
    connection_id: connection.body.id,
    mcp_connection_id: mcp.body.id,
    domain_id: domain.body.id,
    context_id: context.body.id,
    message_id: message.body.message_id,
    attachment_id: listed.body.items[0].attachments[0].id,
    conversation_id: message.body.conversation_id,
    failed_mail_id: await storeFailedMail(t, caller, inbox.body.id),
    webhook_id: webhook.body.id,
    delivery_id: tested.body.delivery.id,
  };
}

async function signInTo(t: TestApp, caller: Caller): Promise<string> {
  const browser = { by_code: true, client: "192.0.2.7", user_agent: "Test" };
  await t.app.write((tx) => startSession(t.app, tx, { user_id: caller.user.id, ...browser }));
  return (await caller.get("/auth/sessions")).body[0].id;
}

async function storeFailedMail(t: TestApp, caller: Caller, inbox_id: string): Promise<string> {
  const raw_mail_id = await t.app.write((tx) => storeRawMail(t.app, tx, Buffer.from("Subject: x\r\n\r\nx")));
  const [mail] = await storeMessages(t, caller.user, [{ state: "failed", inbox_id, raw_mail_id }]);
  return mail?.id ?? "";
}

function send(t: TestApp, caller: Caller, route: Route, path: string): Promise<Answer> {
  return sendAs(t, { "x-api-key": caller.key }, route, path);
}

function sendAs(t: TestApp, credential: Record<string, string>, route: Route, path: string): Promise<Answer> {
  const body = route.method === "GET" || route.method === "DELETE" ? undefined : (BODIES[route.name] ?? {});
  return t.request(path, {
    method: route.method,
    headers: {
      ...credential,
      // A form says itself what it is.
      ...(isForm(body) ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: isForm(body) ? body : JSON.stringify(body) }),
  });
}

function isForm(body: unknown): body is FormData | URLSearchParams {
  return body instanceof FormData || body instanceof URLSearchParams;
}

function markdownForm(): FormData {
  const form = new FormData();
  form.append("file", new File(["# Brand voice"], "brand.md"));
  return form;
}

function withoutRequestId(answer: Answer): string {
  return JSON.stringify({ ...answer.body, request_id: "" });
}

function namesOf(answer: Answer): string[] {
  return [...answer.headers.keys()].sort();
}
