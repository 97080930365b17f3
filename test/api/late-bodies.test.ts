import { describe, expect, test } from "bun:test";
import { addApiKey } from "../../src/resources/accounts/api-keys.ts";
import type { Caller } from "../../src/resources/accounts/sessions.ts";
import type { App } from "../../src/app.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { createConnection } from "../../src/resources/connections/connections.ts";
import { knownCaller } from "../../src/http/auth.ts";
import { createInbox, patchInbox } from "../../src/resources/inboxes/inboxes.ts";
import { connectProvider } from "../../src/resources/integrations/connect.ts";
import { createEndpoint } from "../../src/resources/webhooks/endpoints.ts";
import { type Answer, type Caller as Client, type TestApp, testApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";

const ADA = "ada@example.com";
const EVE = "eve@evil.example";
const HOOK = { url: "https://198.51.100.7/hook", event_types: ["*" as const] };

type Headers = Record<string, string>;

/** What somebody else does with Ada's credential, once the last byte of the body has come. */
const ACTS: [string, (inbox_id: string) => [method: string, path: string, body: object]][] = [
  ["makes a key", () => ["POST", "/auth/api-key", { name: "eve" }]],
  ["lets a sender in", (id) => ["PATCH", `/inboxes/${id}`, { allowlist_senders: [EVE] }]],
  ["makes an inbox", () => ["POST", "/inboxes", { label: "eve", allowlist_senders: [EVE] }]],
  ["makes a webhook", () => ["POST", "/v1/webhooks", HOOK]],
  ["makes a connection", () => ["POST", "/connections", { kind: "openai", api_key: "sk-eve" }]],
  ["begins a consent", () => ["POST", "/integrations/notes/connect", {}]],
  ["makes a context", () => ["POST", "/contexts", { title: "eve", body: "obey eve", kind: "instruction" }]],
  ["asks for an answer", () => ["POST", "/v1/messages", { instruction: "Summarise" }]],
  ["changes the profile", () => ["PATCH", "/auth/profile", { name: "eve" }]],
];

/** The same acts without HTTP, so that only their write is left. */
const WRITES: [string, (app: App, caller: Caller, inbox_id: string) => Promise<unknown>][] = [
  ["makes a key", (app, caller) => addApiKey(app, caller, "eve")],
  [
    "lets a sender in",
    (app, caller, id) => patchInbox(app, caller, { id, settings: { allowlist_senders: [EVE] } }),
  ],
  ["makes an inbox", (app, caller) => createInbox(app, caller, { allowlist_senders: [EVE] })],
  ["makes a webhook", (app, caller) => createEndpoint(app, caller, HOOK)],
  [
    "makes a connection",
    (app, caller) => createConnection(app, caller, { kind: "openai", credential: "sk-eve" }),
  ],
  ["begins a consent", (app, caller) => connectProvider(app, caller, "notes")],
];

/** How the owner ends the credential meanwhile. */
const ENDS: [string, (room: Room) => Promise<{ headers: Headers; end: () => Promise<Answer> }>][] = [
  [
    "a key that is revoked",
    async ({ owner, send }) => {
      const { body } = await owner.post("/auth/api-key", { name: "leaked" });
      return {
        headers: { "x-api-key": body.key },
        end: () => send("DELETE", `/auth/api-keys/${body.id}`),
      };
    },
  ],
  [
    "a browser that is signed out",
    async ({ t, owner }) => {
      const cookie = await sessionOf(t, owner);
      const headers = { cookie };
      return { headers, end: () => t.request("/auth/logout", { method: "POST", headers }) };
    },
  ],
  [
    "a browser that another one signs out with a new password",
    async ({ t, owner, send }) => ({
      headers: { cookie: await sessionOf(t, owner) },
      end: () => send("POST", "/auth/set-password", { password: "quiet river 42" }),
    }),
  ],
];

interface Room {
  t: TestApp;
  owner: Client;
  /** A request of the owner's own browser. */
  send: (method: string, path: string, body?: object) => Promise<Answer>;
}

async function openRoom(t: TestApp): Promise<Room> {
  const owner = await t.as(ADA);
  const cookie = await sessionOf(t, owner);
  return { t, owner, send: (method, path, body) => sendLate(t, [method, path, body], { cookie }) };
}

/** A request whose body comes only once `meanwhile` is over; its headers have been looked at before. */
function sendLate(
  t: TestApp,
  [method, path, body]: [string, string, object | undefined],
  headers: Headers,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<Answer> {
  if (body === undefined) return t.request(path, { method, headers });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await meanwhile();
        controller.enqueue(Buffer.from(JSON.stringify(body)));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return t.request(path, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    body: stream,
    duplex: "half",
  });
}

const ROOM = {
  plans: { default: "team" as const },
  llm: { kind: "demo" as const },
  webhooks: { allow: ["198.51.100.7"] },
  integrations: { notes: { client_id: "c", client_secret: "s" } },
} satisfies ConfigOverrides;

describe.each(ENDS)("of %s before the body has come", (_end, begin) => {
  test.each(ACTS)("nobody %s", async (_act, act) => {
    await using t = await testApp(ROOM);
    const room = await openRoom(t);
    const { id } = (await room.owner.post("/inboxes", {})).body;
    const { headers, end } = await begin(room);
    // The same request, of a credential that lives on.
    const honest = await sendLate(t, act(id), headers);
    expect([200, 201]).toContain(honest.status);
    const before = await everything(t);
    const late = await sendLate(t, act(id), headers, async () => {
      expect([200, 204]).toContain((await end()).status);
    });
    expect([late.status, late.body.code]).toEqual([401, "unauthorized"]);
    expect(await everything(t)).toEqual(before);
  });
});

describe.each(ENDS)("of %s once its request is being worked on", (_end, begin) => {
  test.each(WRITES)("nobody %s", async (_act, write) => {
    await using t = await testApp(ROOM);
    const room = await openRoom(t);
    const { id } = (await room.owner.post("/inboxes", {})).body;
    const { headers, end } = await begin(room);
    const request = new Request("http://mw.test/auth/me", { headers });
    const caller = await knownCaller(t.app, { request, server: null });
    if (!caller) throw new Error("the credential is not good");
    await write(t.app, caller, id);
    const before = await everything(t);
    expect([200, 204]).toContain((await end()).status);
    await expect(write(t.app, caller, id)).rejects.toMatchObject({ code: "unauthorized" });
    expect(await everything(t)).toEqual(before);
  });
});

async function everything(t: TestApp): Promise<unknown> {
  const tables = [
    "webhook_endpoints",
    "connections",
    "oauth_states",
    "inboxes",
    "contexts",
    "messages",
  ] as const;
  const rows = await Promise.all(tables.map((table) => t.app.db.selectFrom(table).selectAll().execute()));
  const keys = t.app.db.selectFrom("api_keys").select("name").where("name", "=", "eve").execute();
  const users = t.app.db.selectFrom("users").select("name").execute();
  return [...rows, await keys, await users];
}
