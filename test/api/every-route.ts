import { startSession } from "../../src/resources/accounts/sessions.ts";
import { createHttp } from "../../src/api.ts";
import { storeRawMail } from "../../src/inbound/accept.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { HASH, storeApproval } from "../support/approvals.ts";
import { startStripe } from "../support/stripe-stand-in.ts";
import { ACCESS } from "./access.ts";
import { storeMessages } from "./archive.ts";

/** What each route with an id is tried on: the path of something that the owner has. */
export const OWNED: Record<string, (owner: Owner) => string> = {
  "GET /v1/messages/:id": (owner) => `/v1/messages/${owner.message_id}`,
  "GET /messages/:message_id": (owner) => `/messages/${owner.message_id}`,
  "GET /messages/:message_id/attachments/:attachment_id": (owner) =>
    `/messages/${owner.message_id}/attachments/${owner.attachment_id}`,
  "GET /messages/:message_id/raw": (owner) => `/messages/${owner.failed_mail_id}/raw`,
  "PATCH /messages/:message_id": (owner) => `/messages/${owner.message_id}`,
  "DELETE /messages/:message_id": (owner) => `/messages/${owner.failed_mail_id}`,
  "POST /messages/:message_id/restore": (owner) => `/messages/${owner.message_id}/restore`,
  "DELETE /conversations/:conversation_id": (owner) => `/conversations/${owner.conversation_id}`,
  "POST /conversations/:conversation_id/restore": (owner) =>
    `/conversations/${owner.conversation_id}/restore`,
  "GET /v1/webhooks/:id/counts": (owner) => `/v1/webhooks/${owner.webhook_id}/counts`,
  "POST /messages/:message_id/cancel": (owner) => `/messages/${owner.waiting_id}/cancel`,
  "POST /messages/:message_id/retry": (owner) => `/messages/${owner.failed_mail_id}/retry`,
  "POST /messages/:message_id/replay": (owner) => `/messages/${owner.message_id}/replay`,
  "GET /messages/:message_id/replays": (owner) => `/messages/${owner.message_id}/replays`,
  "GET /messages/:message_id/replays/:replay_id": (owner) =>
    `/messages/${owner.message_id}/replays/${owner.replay_id}`,
  "DELETE /messages/:message_id/replays/:replay_id": (owner) =>
    `/messages/${owner.message_id}/replays/${owner.replay_id}`,
  "GET /v1/test-runs/:test_run_id": (owner) => `/v1/test-runs/${owner.test_run_id}`,
  "DELETE /v1/test-runs/:test_run_id": (owner) => `/v1/test-runs/${owner.test_run_id}`,
  "GET /conversations/:conversation_id": (owner) => `/conversations/${owner.conversation_id}`,
  "GET /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "PATCH /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "DELETE /inboxes/:inbox_id": (owner) => `/inboxes/${owner.inbox_id}`,
  "POST /inboxes/:inbox_id/rotate": (owner) => `/inboxes/${owner.inbox_id}/rotate`,
  "GET /inboxes/:inbox_id/vcard": (owner) => `/inboxes/${owner.inbox_id}/vcard`,
  "POST /inboxes/:inbox_id/email-vcard": (owner) => `/inboxes/${owner.inbox_id}/email-vcard`,
  "POST /inboxes/:inbox_id/test": (owner) => `/inboxes/${owner.inbox_id}/test`,
  "POST /inboxes/:inbox_id/rules/try": (owner) => `/inboxes/${owner.inbox_id}/rules/try`,
  "GET /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "PATCH /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "DELETE /auth/sessions/:session_id": (owner) => `/auth/sessions/${owner.session_id}`,
  "DELETE /auth/api-keys/:key_id": (owner) => `/auth/api-keys/${owner.key_id}`,
  "DELETE /connections/:connection_id": (owner) => `/connections/${owner.connection_id}`,
  "GET /contexts/:context_id": (owner) => `/contexts/${owner.context_id}`,
  "PATCH /contexts/:context_id": (owner) => `/contexts/${owner.context_id}`,
  "DELETE /contexts/:context_id": (owner) => `/contexts/${owner.context_id}`,
  "GET /contexts/:context_id/versions": (owner) => `/contexts/${owner.context_id}/versions`,
  "GET /contexts/:context_id/versions/:version": (owner) => `/contexts/${owner.context_id}/versions/1`,
  "POST /contexts/:context_id/versions/:version/restore": (owner) =>
    `/contexts/${owner.context_id}/versions/1/restore`,
  "DELETE /contexts/:context_id/versions/:version": (owner) => `/contexts/${owner.context_id}/versions/1`,
  "GET /v1/schedules/:schedule_id": (owner) => `/v1/schedules/${owner.schedule_id}`,
  "PATCH /v1/schedules/:schedule_id": (owner) => `/v1/schedules/${owner.schedule_id}`,
  "DELETE /v1/schedules/:schedule_id": (owner) => `/v1/schedules/${owner.schedule_id}`,
  "POST /v1/schedules/:schedule_id/run": (owner) => `/v1/schedules/${owner.schedule_id}/run`,
  "GET /v1/schedules/:schedule_id/runs": (owner) => `/v1/schedules/${owner.schedule_id}/runs`,
  "GET /v1/approvals/:approval_id": (owner) => `/v1/approvals/${owner.approval_id}`,
  "POST /v1/approvals/:approval_id/approve": (owner) => `/v1/approvals/${owner.approval_id}/approve`,
  "POST /v1/approvals/:approval_id/refuse": (owner) => `/v1/approvals/${owner.other_approval_id}/refuse`,
  "POST /custom-domains/:domain_id/verify": (owner) => `/custom-domains/${owner.domain_id}/verify`,
  "DELETE /custom-domains/:domain_id": (owner) => `/custom-domains/${owner.domain_id}`,
  "POST /connections/:connection_id/test": (owner) => `/connections/${owner.connection_id}/test`,
  "POST /integrations/mcp/:connection_id/connect": (owner) =>
    `/integrations/mcp/${owner.mcp_connection_id}/connect`,
  "GET /v1/webhooks/:id": (owner) => `/v1/webhooks/${owner.webhook_id}`,
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

const CONTEXT = { title: "Brand voice", body: "Plain words.", kind: "instruction" };

const SCHEDULE = { instruction: "Say hello.", every: "daily" };

const CONFIRMATION = new URLSearchParams({ code: "x", state: "x", proof: "x" });

const BODIES: Record<string, unknown> = {
  "POST /integrations/:provider/confirm": CONFIRMATION,
  "POST /integrations/mcp/confirm": CONFIRMATION,
  "POST /v1/messages": { instruction: "Summarise" },
  "POST /connections": { kind: "demo" },
  "POST /connections/test": { kind: "demo" },
  "POST /connections/pull": { kind: "ollama" },
  "POST /connections/:connection_id/pull": { model: "llama3.2" },
  "POST /admin/users": { email: "new@example.com" },
  "POST /custom-domains": { domain: "ai.acme.test" },
  "POST /contexts": CONTEXT,
  "POST /v1/schedules": SCHEDULE,
  "PATCH /v1/schedules/:schedule_id": { title: "Hello" },
  "POST /v1/approvals/:approval_id/approve": { hash: HASH },
  "POST /contexts/upload": markdownForm(),
  "POST /billing/checkout": { plan: "team" },
  "POST /auth/set-password": { password: "quiet river 42" },
  // An address, so that no name server is asked.
  "POST /v1/webhooks": { url: "https://93.184.216.34/hook", event_types: ["*"] },
  "POST /v1/webhooks/:id/replay": { since: 0 },
  "PATCH /auth/profile": { name: "Ada" },
  "PATCH /connections/:connection_id": { label: "Work" },
  "PATCH /messages/:message_id": { tags: ["q3"] },
  "PATCH /inboxes/:inbox_id": { allowlist_senders: ["eve@example.com"] },
  "PATCH /contexts/:context_id": { enabled: false },
  "PATCH /v1/webhooks/:id": { enabled: false },
  "PATCH /admin/users/:user_id": { plan: "team" },
  "DELETE /auth/account": { confirm: "ada@example.com" },
};

export const LOOPBACK = { allow: ["127.0.0.1"] };

/** A port where nobody listens: nothing here may ask the world. */
export const NO_DNS = { servers: ["127.0.0.1:9"] };

export interface Owner {
  caller: Caller;
  key_id: string;
  session_id: string;
  inbox_id: string;
  connection_id: string;
  mcp_connection_id: string;
  domain_id: string;
  context_id: string;
  schedule_id: string;
  approval_id: string;
  other_approval_id: string;
  waiting_id: string;
  message_id: string;
  replay_id: string;
  test_run_id: string;
  attachment_id: string;
  conversation_id: string;
  failed_mail_id: string;
  webhook_id: string;
  delivery_id: string;
}

export interface Route {
  method: string;
  path: string;
  name: string;
}

/** A server on which every route can be served, and an account with an inbox. */
export async function offerEverything() {
  await using built = new AsyncDisposableStack();
  const stripe = built.use(startStripe(() => 0));
  const t = built.use(
    await testApp({ llm: { kind: "demo" }, dns: NO_DNS, plans: { default: "pro" }, ...stripe.config }),
  );
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  const { body } = await ada.post("/v1/messages", { instruction: "Say hello." });
  await ada.patch(`/messages/${body.message_id}`, { expected: { contains: "hello" } });
  const stack = built.move();
  return { t, ada, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

export function allRoutes(t: TestApp): Route[] {
  const { routes } = createHttp(t.app, { ready: async () => ({}) });
  return routes.map(({ method, path }) => ({ method, path, name: `${method} ${path}` }));
}

export function closedRoutes(t: TestApp): Route[] {
  return allRoutes(t).filter((route) => ACCESS[route.name] !== "public");
}

/** `server`: the address of a tool server that has an authorization server, and takes deliveries as well. */
export async function ownerOfEverything(t: TestApp, name: string, server: string): Promise<Owner> {
  const caller = await t.as(`${name.toLowerCase().replaceAll(/[^a-z]+/g, "-")}@example.com`);
  const inbox = await caller.post("/inboxes", {});
  const connection = await caller.post("/connections", { kind: "demo" });
  const mcp = await caller.post("/connections", { kind: "mcp", base_url: server });
  const domain = await caller.post("/custom-domains", { domain: "mail.acme.test" });
  const context = await caller.post("/contexts", CONTEXT);
  await caller.patch(`/contexts/${context.body.id}`, { body: "Plain words, short sentences." });
  const schedule = await caller.post("/v1/schedules", SCHEDULE);
  const waiting = await caller.post("/v1/messages", { instruction: "Wait", async: true });
  const message = await caller.post("/v1/messages", {
    instruction: "Read it",
    attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa("hello") }],
  });
  const replay = await caller.post(`/messages/${message.body.message_id}/replay`, {});
  await caller.patch(`/messages/${message.body.message_id}`, { expected: { contains: "read" } });
  const test_run = await caller.post("/v1/test-runs", {});
  const about = { user_id: caller.user.id, inbox_id: inbox.body.id, message_id: message.body.message_id };
  // Last, so that it is told of nothing but its test.
  const webhook = await caller.post("/v1/webhooks", { url: server, event_types: ["*"] });
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
    schedule_id: schedule.body.id,
    approval_id: await storeApproval(t, about),
    other_approval_id: await storeApproval(t, about),
    waiting_id: waiting.body.message_id,
    message_id: message.body.message_id,
    replay_id: replay.body.id,
    test_run_id: test_run.body.id,
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

export function send(t: TestApp, caller: Caller, route: Route, path: string): Promise<Answer> {
  return sendAs(t, { "x-api-key": caller.key }, route, path);
}

export function sendAs(
  t: TestApp,
  credential: Record<string, string>,
  route: Route,
  path: string,
): Promise<Answer> {
  const none = route.method === "GET" || route.method === "DELETE" ? undefined : {};
  const body = BODIES[route.name] ?? none;
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
