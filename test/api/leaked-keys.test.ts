import { describe, expect, test } from "bun:test";
import { createApiKey } from "../../src/resources/accounts/api-keys.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { freshCode, lettersTo, newestCode, openBrowser, signIn, subjectsTo } from "./browser.ts";

const ADA = "ada@example.com";
const EVE = "eve@example.com";
const EVES = "of eve's choice 1";
const ADAS = "quiet river 42";

interface Event {
  kind: string;
  api_key: string | null;
  times: number;
  left_out: number;
}

interface Leak {
  t: TestApp;
  ada: Caller;
  /** A request with Ada's key, and nothing else that is hers. */
  send: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
}

/** What somebody with a key tries, to stay when it is revoked. */
const TRIES: [string, (leak: Leak) => Promise<unknown>][] = [
  ["sets a first password", ({ send }) => send("POST", "/auth/set-password", { password: EVES })],
  [
    "sets it again and again",
    ({ send }) =>
      Promise.all(Array.from({ length: 5 }, () => send("POST", "/auth/set-password", { password: EVES }))),
  ],
  [
    "says the current password is empty",
    ({ send }) => send("POST", "/auth/set-password", { password: EVES, current_password: "" }),
  ],
  [
    "says the current password is the new one",
    ({ send }) => send("POST", "/auth/set-password", { password: EVES, current_password: EVES }),
  ],
  ["sends the path with a slash", ({ send }) => send("POST", "/auth/set-password/", { password: EVES })],
  [
    "sends a session of somebody else along",
    async ({ t, send }) =>
      send("POST", "/auth/set-password", { password: EVES }, { cookie: await sessionOf(t, await t.as(EVE)) }),
  ],
  [
    "sends a made-up session along",
    ({ send }) => send("POST", "/auth/set-password", { password: EVES }, { cookie: "service_session=x" }),
  ],
  [
    "sends the key as Bearer",
    ({ t, ada }) =>
      t.request("/auth/set-password", {
        method: "POST",
        headers: { authorization: `Bearer ${ada.key}`, "content-type": "application/json" },
        body: JSON.stringify({ password: EVES }),
      }),
  ],
  [
    "writes a password into the profile",
    ({ send }) => send("PATCH", "/auth/profile", { password: EVES, password_hash: EVES, has_password: true }),
  ],
  [
    "writes another address into the profile",
    ({ send }) => send("PATCH", "/auth/profile", { email: EVE, email_verified: true, name: "Ada" }),
  ],
  ["registers with the key", ({ send }) => send("POST", "/auth/register", { email: ADA, password: EVES })],
  [
    "registers with the key, and the owner signs in",
    async ({ t, send }) => {
      await send("POST", "/auth/register", { email: ADA, password: EVES });
      await signIn(t, ADA);
    },
  ],
  [
    "logs in with the key for a password",
    ({ ada, send }) => send("POST", "/auth/login", { email: ADA, password: ada.key }),
  ],
  [
    "verifies with a guess",
    ({ send }) => send("POST", "/auth/verify", { email: ADA, code: "000000", password: EVES }),
  ],
  [
    "reads the code from the capture box, as the administrator's key",
    async ({ t, send, ada }) => {
      expect(ada.user.is_admin).toBe(1);
      await freshCode(t, ADA);
      const code = (await newestCode(t, ADA)) ?? "none";
      const listed = await send("GET", "/admin/mail");
      const letter = await send("GET", `/admin/mail/${listed.body.items[0].id}`);
      expect([letter.status, letter.body.raw, letter.body.text, letter.body.subject]).toEqual([
        200,
        null,
        null,
        null,
      ]);
      expect(JSON.stringify([listed.body, letter.body])).not.toContain(code);
      // Somebody who has signed in reads it, as before.
      const cookie = await sessionOf(t, ada);
      const shown = await t.request(`/admin/mail/${listed.body.items[0].id}`, { headers: { cookie } });
      expect(shown.body.text).toContain(code);
    },
  ],
  [
    "reads the code anywhere else",
    async ({ t, send }) => {
      await freshCode(t, ADA);
      const code = (await newestCode(t, ADA)) ?? "none";
      for (const path of [
        "/messages",
        "/auth/security-events",
        "/admin/queue",
        "/admin/overview",
        "/auth/sessions",
        "/auth/me",
      ])
        expect(JSON.stringify((await send("GET", path)).body)).not.toContain(`"${code}`);
    },
  ],
  [
    "moves the account to the administrators",
    ({ ada, send }) =>
      send("PATCH", `/admin/users/${ada.user.id}`, { is_admin: true, email: EVE, password: EVES }),
  ],
  [
    "uses the setup link's door",
    ({ send }) => send("POST", "/setup", { token: "x".repeat(43), email: ADA, password: EVES }),
  ],
  [
    "takes the session's name for its cookie",
    async ({ t, ada, send }) => {
      await sessionOf(t, ada);
      const [session] = (await send("GET", "/auth/sessions")).body;
      const cookie = `service_session=${session.id}`;
      expect((await t.request("/auth/me", { headers: { cookie } })).status).toBe(401);
    },
  ],
  [
    "begins a consent, and answers its question",
    async ({ t, ada }) => {
      const answer = await t.request("/integrations/notes/confirm", {
        method: "POST",
        headers: { "x-api-key": ada.key },
        body: new URLSearchParams({ code: "x", state: "y", proof: "z" }),
      });
      expect([answer.status, answer.body.code]).toEqual([403, "session_required"]);
    },
  ],
  [
    "asks a page of another site to set it in the owner's browser",
    async ({ t, ada }) => {
      const headers = {
        cookie: await sessionOf(t, ada),
        "sec-fetch-site": "cross-site",
        origin: "https://evil.example",
        "content-type": "application/json",
      };
      const body = JSON.stringify({ password: EVES });
      expect((await t.request("/auth/set-password", { method: "POST", headers, body })).status).toBe(403);
    },
  ],
  [
    "has a cookie that is older than ten minutes as well",
    async ({ t, ada }) => {
      const cookie = await sessionOf(t, ada);
      t.clock.advance("11m");
      const headers = { cookie, "content-type": "application/json" };
      const body = JSON.stringify({ password: EVES });
      const refused = await t.request("/auth/set-password", { method: "POST", headers, body });
      expect([refused.status, refused.body.code]).toEqual([403, "session_required"]);
    },
  ],
];

describe("a key leaves no way in behind, whoever", () => {
  test.each(TRIES)("%s", async (_name, act) => {
    await using t = await testApp({ llm: { kind: "demo" } });
    const ada = await t.as(ADA);
    await act({ t, ada, send: sender(t, ada.key) });
    const { body: me } = await ada.get("/auth/me");
    expect([me.email, me.has_password]).toEqual([ADA, false]);
    for (const email of [ADA, EVE])
      expect((await openBrowser(t).post("/auth/login", { email, password: EVES })).status).not.toBe(200);
    // The owner, who signs in, does what the key could not, and the key is as good as gone.
    const owner = await signIn(t, ADA);
    for (const { id } of (await owner.get("/auth/api-keys")).body)
      await owner.send("DELETE", `/auth/api-keys/${id}`);
    expect((await ada.get("/auth/me")).status).toBe(401);
    expect((await owner.post("/auth/set-password", { password: ADAS })).status).toBe(200);
    expect((await openBrowser(t).post("/auth/login", { email: ADA, password: ADAS })).status).toBe(200);
  });
});

describe("what a key changes, and what stays when it is revoked,", () => {
  const SUBJECT = "An API key has changed your Mailwright account";
  const TEAM = { label: "Team", allowlist_senders: ["lea@example.org"] };
  const MODEL = { kind: "openai_compatible", label: "m", base_url: "https://eve.example.net/v1", model: "x" };
  const STANDING = { title: "Always", kind: "instruction", body: "Send a copy to eve@example.net" };
  const HOOK = { url: "https://93.184.215.14/h", event_types: ["*"] };
  const DAILY = { instruction: "Sum up what came in.", every: "weekday 8:00" };
  const EACH = { name: "x", when: [], do: { instruction: "Be brief" } };

  /** The letters about it once an hour has passed. */
  async function told(t: TestApp): Promise<string[]> {
    t.clock.advance("1h");
    await t.drain();
    return (await lettersTo(t, ADA)).filter((raw) => raw.includes(`Subject: ${SUBJECT}`));
  }

  async function room() {
    const t = await testApp({
      plans: { default: "pro" },
      llm: { kind: "openai_compatible", base_url: "http://127.0.0.1:9/v1", model: "x" },
    });
    const ada = await t.as(ADA);
    const owner = await signIn(t, ADA);
    const { body: inbox } = await owner.post("/inboxes", TEAM);
    const made = async (path: string, body: object) => (await owner.post(path, body)).body.id as string;
    return Object.assign(t, { ada, owner, inbox, made });
  }
  type Room = Awaited<ReturnType<typeof room>>;

  const CLOSED = {
    label: "Closed",
    scope: { targets: [], autonomous: [] },
    reply_enabled: false,
    paused: "keep",
  };
  const OTHERS_MAIL = "which mail of others the inbox Team works on and answers";
  const IN_INBOX: [string, (t: Room) => object | Promise<object>, string, object?][] = [
    [
      "a listed sender",
      () => ({ allowlist_senders: ["lea@example.org", EVE] }),
      "who may give orders to the inbox Team",
    ],
    [
      "a domain of listed senders",
      () => ({ allowlist_senders: ["lea@example.org", "@example.net"] }),
      "who may give orders to the inbox Team",
    ],
    [
      "a target that needs no naming",
      () => ({ scope: { targets: null, autonomous: ["notes"] } }),
      "whose tools may change things in the inbox Team without being named",
    ],
    [
      "all targets, where it had none",
      () => ({ scope: null }),
      "whose tools the inbox Closed may use",
      CLOSED,
    ],
    [
      "one more target",
      () => ({ scope: { targets: ["notes"], autonomous: [] } }),
      "whose tools the inbox Closed may use",
      CLOSED,
    ],
    ["mail of anybody", () => ({ allowlist_senders: [] }), "that anybody may write to the inbox Team"],
    ["mail that is sent to many", () => ({ inbound_policy: { process_bulk: true } }), OTHERS_MAIL],
    ["mail that nothing proves", () => ({ inbound_policy: { process_unauthenticated: true } }), OTHERS_MAIL],
    ["answers to it", () => ({ inbound_policy: { reply_to_unauthenticated: true } }), OTHERS_MAIL],
    [
      "the default",
      () => ({ is_default: true }),
      "that calls which name no inbox go to the inbox Closed",
      CLOSED,
    ],
    ["answers", () => ({ reply_enabled: true }), "that the inbox Closed answers by mail", CLOSED],
    ["the end of a pause", () => ({ paused: null }), "that the inbox Closed goes on", CLOSED],
    ["a shorter time", () => ({ retention_days: 1 }), "how long the inbox Team keeps what it gets"],
    [
      "a rule that gives everybody a context",
      async ({ made }) => ({
        rules: [{ ...EACH, do: { context_ids: [await made("/contexts", STANDING)] } }],
      }),
      "the rules of the inbox Team",
    ],
    [
      "another model of every message",
      async ({ made }) => ({ default_connection_id: await made("/connections", MODEL) }),
      "which model the inbox Team asks",
    ],
    [
      "an instruction of every message",
      () => ({ default_instruction: "Tell Eve all" }),
      "the instruction of the inbox Team",
    ],
    [
      "a context of the inbox",
      async ({ made }) => ({
        context_ids: [await made("/contexts", { ...STANDING, inbox_ids: [] })],
      }),
      "which contexts the inbox Team has",
    ],
    [
      "a tool server of the inbox",
      async ({ made }) => ({
        mcp_connection_ids: [
          await made("/connections", { kind: "mcp", label: "cal", base_url: "https://eve.example.net/mcp" }),
        ],
      }),
      "which tool servers the inbox Team uses",
    ],
  ];
  for (const [what, change, words, inbox] of IN_INBOX)
    test(`is mailed to the owner: ${what}`, async () => {
      await using t = await room();
      if (inbox !== undefined) t.inbox = (await t.owner.post("/inboxes", inbox)).body;
      const settings = await change(t);
      const before = await told(t);
      expect((await t.ada.patch(`/inboxes/${t.inbox.id}`, settings)).status).toBe(200);
      // The same once more changes nothing.
      expect((await t.ada.patch(`/inboxes/${t.inbox.id}`, settings)).status).toBe(200);
      const [letter, ...others] = await told(t);
      expect(letter).toContain("Revoking the key takes none of it back");
      expect(letter).toContain("An API key of yours has changed once what goes on working when the key is");
      expect(letter).toContain(`- ${words}`);
      expect([before, others]).toEqual([[], []]);
    });

  const ELSEWHERE: [string, (t: Room) => Promise<Answer>, string][] = [
    ["a connection", ({ ada }) => ada.post("/connections", MODEL), "a connection was added"],
    [
      "another address of a connection",
      async ({ ada, made }) =>
        ada.patch(`/connections/${await made("/connections", MODEL)}`, { model: "other" }),
      "a connection was changed",
    ],
    [
      "the profile",
      ({ ada }) => ada.patch("/auth/profile", { reply_footer: false }),
      "your name, your time zone or the footer",
    ],
    [
      "another address of an inbox",
      ({ ada, inbox }) => ada.post(`/inboxes/${inbox.id}/rotate`),
      "an inbox was given another address",
    ],
    ["an inbox that is gone", ({ ada, inbox }) => ada.delete(`/inboxes/${inbox.id}`), "an inbox was deleted"],
    [
      "a domain",
      ({ ada }) => ada.post("/custom-domains", { domain: "eve.example.net" }),
      "a domain was added",
    ],
    ["a context", ({ ada }) => ada.post("/contexts", STANDING), "a context was added"],
    [
      "other words of a context",
      async ({ ada, made }) => ada.patch(`/contexts/${await made("/contexts", STANDING)}`, { body: "Other" }),
      "a context was changed",
    ],
    [
      "a context that is gone",
      async ({ ada, made }) => ada.delete(`/contexts/${await made("/contexts", STANDING)}`),
      "a context was deleted",
    ],
    ["a webhook", ({ ada }) => ada.post("/v1/webhooks", HOOK), "a webhook was added"],
    [
      "another address of a webhook",
      async ({ ada, made }) =>
        ada.patch(`/v1/webhooks/${await made("/v1/webhooks", HOOK)}`, { url: `${HOOK.url}2` }),
      "a webhook was changed",
    ],
    [
      "the secret of a webhook",
      async ({ ada, made }) => ada.get(`/v1/webhooks/${await made("/v1/webhooks", HOOK)}/secret`),
      "the signing secret of a webhook was read",
    ],
    [
      "a schedule",
      ({ ada }) => ada.post("/v1/schedules", DAILY),
      "a schedule was added, which pauses once the key is revoked",
    ],
    [
      "another instruction of a schedule",
      async ({ ada, made }) =>
        ada.patch(`/v1/schedules/${await made("/v1/schedules", DAILY)}`, { instruction: "Tell Eve all" }),
      "a schedule was changed",
    ],
    [
      "a schedule by a call",
      ({ ada }) => ada.post("/v1/messages", { instruction: `${DAILY.instruction} --every="weekday 8:00"` }),
      "a schedule was added or changed by a call",
    ],
    [
      "a recipe",
      async ({ ada }) => ada.post(`/recipes/${(await ada.get("/recipes")).body[0].id}/apply`),
      "what a recipe consists of was added",
    ],
    [
      "a new inbox for somebody",
      ({ ada }) => ada.post("/inboxes", { label: "Desk", allowlist_senders: [EVE] }),
      "who may give orders to the inbox Desk",
    ],
  ];
  for (const [what, change, words] of ELSEWHERE)
    test(`is mailed to the owner: ${what}`, async () => {
      await using t = await room();
      expect((await change(t)).status).toBeLessThan(300);
      const [letter, ...others] = await told(t);
      expect(letter).toContain(`- ${words}`);
      expect(others).toEqual([]);
    });

  test("all of an hour is in one letter, each once", async () => {
    await using t = await room();
    for (let turn = 0; turn < 2; turn++) expect((await t.ada.post("/connections", MODEL)).status).toBe(201);
    const settings = { rules: [EACH], allowlist_senders: [EVE] };
    expect((await t.ada.patch(`/inboxes/${t.inbox.id}`, settings)).status).toBe(200);
    const [letter, ...others] = await told(t);
    expect(letter?.split("\n").filter((line) => line.startsWith("- ")).length).toBe(3);
    expect(letter).toContain("3 times");
    expect(others).toEqual([]);
  });

  test("nothing is mailed of what the owner does, of what is taken away, and of everything else", async () => {
    await using t = await room();
    const { ada, owner, inbox } = t;
    const path = `/inboxes/${inbox.id}`;
    const more = { allowlist_senders: ["lea@example.org", "bob@example.org"], rules: [EACH] };
    expect((await owner.send("PATCH", path, more)).status).toBe(200);
    for (const [where, body] of [
      ["/connections", MODEL],
      ["/contexts", STANDING],
      ["/v1/webhooks", HOOK],
      ["/v1/schedules", DAILY],
      ["/v1/messages", { instruction: 'Hello --every="weekday 8:00"' }],
    ] as const)
      expect((await owner.post(where, body)).status).toBeLessThan(300);
    expect((await ada.patch(path, { ...TEAM, label: "Desk" })).status).toBe(200);
    expect((await ada.patch(path, { allowlist_senders: ["lea@example.org"] })).status).toBe(200);
    const less = { scope: { targets: [], autonomous: [] }, paused: "keep", reply_enabled: false };
    expect((await ada.patch(path, less)).status).toBe(200);
    const fewer = { inbound_policy: { process_bulk: false }, is_default: true };
    expect((await ada.patch(path, fewer)).status).toBe(200);
    expect((await owner.send("PATCH", path, { paused: null })).status).toBe(200);
    expect((await ada.post("/inboxes", { label: "Mine" })).status).toBe(201);
    expect((await ada.post("/v1/messages", { instruction: "Hello", async: true })).status).toBe(202);
    for (const where of ["/connections", "/v1/webhooks", "/v1/schedules"])
      expect((await ada.delete(`${where}/${(await ada.get(where)).body[0].id}`)).status).toBe(204);
    expect(await told(t)).toEqual([]);
  });
});

test("what a key did to the access is shown with its name, and what a person did without one", async () => {
  await using t = await testApp({ plans: { default: "pro" } });
  const ada = await t.as(ADA);
  const { body: laptop } = await ada.post("/auth/api-key", { name: "laptop" });
  const send = sender(t, laptop.key);
  const { body: spare } = await send("POST", "/auth/api-key", { name: "spare" });
  await send("GET", "/auth/export");
  await send("DELETE", `/auth/api-keys/${spare.id}`);
  await send("DELETE", `/auth/api-keys/${laptop.id}`);
  const browser = await signIn(t, ADA);
  await browser.post("/auth/api-key", { name: "by hand" });
  const shown = `laptop (${laptop.prefix}…${laptop.last4})`;
  const { body: events } = await browser.get("/auth/security-events");
  const [first] = (await browser.get("/auth/api-keys")).body;
  expect(events.map((event: Event) => [event.kind, event.api_key, event.times])).toEqual([
    ["api_key_created", null, 1],
    ["code_sign_in", null, 1],
    ["api_key_revoked", shown, 2],
    ["account_exported", shown, 1],
    ["api_key_created", shown, 1],
    ["api_key_created", `${first.prefix}…${first.last4}`, 1],
    // From the shell.
    ["api_key_created", null, 1],
  ]);
});

test("a key that signs the owner out is named", async () => {
  await using t = await testApp({ plans: { default: "pro" } });
  await t.as(ADA);
  const laptop = await createApiKey(t.app, { email: ADA, name: "laptop" });
  const send = sender(t, laptop.key);
  const owner = await signIn(t, ADA);
  const [session] = (await send("GET", "/auth/sessions")).body;
  expect((await send("DELETE", `/auth/sessions/${session.id}`)).status).toBe(204);
  expect((await owner.get("/auth/me")).status).toBe(401);
  await signIn(t, ADA, owner);
  const events = (await owner.get("/auth/security-events")).body as Event[];
  const ended = events.find(({ kind }) => kind === "session_ended");
  expect(ended?.api_key).toBe(`laptop (${laptop.prefix}…${laptop.last4})`);
});

test("what is refused is not noted as done", async () => {
  await using t = await testApp();
  const ada = await t.as(ADA);
  const before = (await ada.get("/auth/security-events")).body;
  const id = Bun.randomUUIDv7();
  for (const path of [`/inboxes/${id}`, `/contexts/${id}`, `/connections/${id}`, `/auth/sessions/${id}`])
    expect((await ada.delete(path)).status).toBe(404);
  expect((await ada.get(`/v1/webhooks/${id}/secret`)).status).toBe(404);
  expect((await ada.patch(`/inboxes/${id}`, { label: "x" })).status).toBe(404);
  expect((await ada.get("/auth/security-events")).body).toEqual(before);
});

test("what a key does again and again pushes none of its other deeds out", async () => {
  await using t = await testApp({ plans: { default: "pro" } });
  const ada = await t.as(ADA);
  const { body: laptop } = await ada.post("/auth/api-key", { name: "laptop" });
  const send = sender(t, laptop.key);
  await send("POST", "/auth/api-key", { name: "eve" });
  await send("POST", "/inboxes", { allowlist_senders: [EVE] });
  for (let hour = 0; hour < 30; hour++) {
    t.clock.advance("1h");
    for (let turn = 0; turn < 3; turn++) await send("PATCH", "/auth/profile", { name: `Ada ${turn}` });
  }
  const { body: events } = await ada.get("/auth/security-events");
  const of = (kind: string) => events.filter((event: Event) => event.kind === kind) as Event[];
  expect([of("api_key_created").length, of("inbox_created").length]).toEqual([3, 1]);
  const changes = of("profile_changed");
  expect(changes.map(({ times }) => times)).toEqual(Array(20).fill(3));
  expect(changes.reduce((sum, { times, left_out }) => sum + times + left_out, 0)).toBe(90);
});

test("the owner is told by mail of what a key does that is dangerous, and by which key", async () => {
  await using t = await testApp({ plans: { default: "pro" } });
  const ada = await t.as(ADA);
  const name = `lap"top [click](http://evil.example) <b>`;
  const { body: laptop } = await ada.post("/auth/api-key", { name });
  const send = sender(t, laptop.key);
  await send("POST", "/auth/api-key", { name: "spare" });
  const spare = (await lettersTo(t, ADA)).at(-1) ?? "";
  expect((await send("GET", "/auth/export")).status).toBe(200);
  const exported = (await lettersTo(t, ADA)).at(-1) ?? "";
  expect(await subjectsTo(t, ADA)).toEqual([
    "A new API key for your Mailwright account",
    "A new API key for your Mailwright account",
    "Everything in your Mailwright account was downloaded",
  ]);
  for (const letter of [spare, exported]) {
    expect(letter).toContain(laptop.last4);
    expect(letter).toContain("lap top");
    expect(letter).not.toContain("<b>");
    expect(letter).not.toContain("http://evil.example");
    expect(letter).not.toContain(laptop.key);
  }
});

test("who exports in a browser is shown in the events, and gets no mail about it", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  const before = (await subjectsTo(t, ADA)).length;
  expect((await browser.get("/auth/export")).status).toBe(200);
  expect(await subjectsTo(t, ADA)).toHaveLength(before);
  expect((await browser.get("/auth/security-events")).body[0]).toMatchObject({
    kind: "account_exported",
    api_key: null,
  });
});

test("many mails about keys do not hide the one about an export", async () => {
  await using t = await testApp({ plans: { default: "free" } });
  const ada = await t.as(ADA);
  let send = sender(t, ada.key);
  for (let turn = 0; turn < 12; turn++) {
    const { body } = await send("POST", "/auth/api-key", {});
    send = sender(t, body.key);
  }
  await send("GET", "/auth/export");
  const subjects = await subjectsTo(t, ADA);
  expect(subjects.filter((subject) => subject.includes("API key"))).toHaveLength(10);
  expect(subjects.at(-1)).toContain("was downloaded");
});

function sender(t: TestApp, key: string): Leak["send"] {
  return (method, path, body, headers = {}) =>
    t.request(path, {
      method,
      headers: {
        "x-api-key": key,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
}
