import { describe, expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { createApiKey, revokeApiKeyOf } from "../../src/resources/accounts/api-keys.ts";
import { resetPassword } from "../../src/resources/accounts/passwords.ts";
import { noteSecurityEvent, type SecurityEvent } from "../../src/resources/accounts/security-events.ts";
import { sumUpNow } from "../../src/resources/accounts/untold.ts";
import { messageOf } from "../../src/errors.ts";
import type { JobPayloads } from "../../src/jobs/kinds.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";
import { lettersTo, openBrowser, signIn, subjectsTo } from "./browser.ts";

const ADA = "ada@example.com";

interface Event {
  kind: string;
  client: string;
  times: number;
  left_out: number;
}

describe("me", () => {
  test("is the account with its credits, limits and features", async () => {
    await using t = await testApp({ llm: { kind: "demo" } });
    const ada = await t.as(ADA);
    await setPlan(t.app, { email: ADA, plan: "free" });
    await ada.post("/inboxes", {});
    await ada.post("/v1/messages", { instruction: "Summarise" });
    expect((await ada.get("/auth/me")).body).toEqual({
      id: ada.user.id,
      email: ADA,
      email_verified: true,
      is_admin: true,
      name: null,
      has_password: false,
      plan: "free",
      credits: {
        allowance: 100,
        used: 1,
        topup: 0,
        remaining: 99,
        unlimited: false,
        period_start: Date.UTC(2026, 0, 1) / 1_000,
        resets_at: Date.UTC(2026, 1, 1) / 1_000,
      },
      limits: {
        contexts: 3,
        schedules: 5,
        inboxes: 3,
        connections: 10,
        custom_domains: 1,
        webhooks: 3,
        api_keys: 1,
        storage_mb: 1_000,
      },
      features: [],
      monthly_budget: null,
      currency: "USD",
      timezone: "UTC",
      reply_footer: true,
      created: t.app.now(),
    });
  });

  test("has new credits in a new month, and more features on a paid plan", async () => {
    await using t = await testApp({ llm: { kind: "demo" } });
    const ada = await t.as(ADA);
    await ada.post("/inboxes", {});
    await ada.post("/v1/messages", { instruction: "Summarise" });
    t.clock.advance("20d");
    const { credits, features } = (await ada.get("/auth/me")).body;
    expect(credits).toMatchObject({ allowance: 10_000, used: 0, remaining: 10_000 });
    expect(credits.period_start).toBe(Date.UTC(2026, 1, 1) / 1_000);
    expect(features).toEqual(["command_contexts", "api_key_revocation", "credit_topup"]);
  });
});

describe("profile", () => {
  test("changes what is sent and leaves the rest", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    const patch = async (body: unknown) => (await browser.send("PATCH", "/auth/profile", body)).body;
    expect(await patch({ name: "  Ada\nLovelace " })).toMatchObject({
      name: "Ada Lovelace",
      timezone: "UTC",
    });
    expect(await patch({ timezone: "europe/berlin" })).toMatchObject({ timezone: "Europe/Berlin" });
    expect(await patch({ timezone: "Asia/Kolkata" })).toMatchObject({ timezone: "Asia/Kolkata" });
    const { warnings, ...last } = await patch({
      reply_footer: false,
      email: "eve@example.com",
      is_admin: true,
      plan: "pro",
    });
    expect(last).toMatchObject({ name: "Ada Lovelace", reply_footer: false, email: ADA, plan: "team" });
    expect(warnings).toHaveLength(3);
    expect(await patch({})).toEqual(last);
    expect(await patch({ name: null })).toEqual({ ...last, name: null });
    expect((await browser.get("/auth/me")).body).toEqual({ ...last, name: null });
  });

  const bad: [string, unknown, string][] = [
    ["a blank name", { name: "  " }, "body.name"],
    ["a name of 101 characters", { name: "😀".repeat(101) }, "body.name"],
    ["a name that is no text", { name: 7 }, "body.name"],
    ["a zone that nobody knows", { timezone: "Europe/Atlantis" }, "body.timezone"],
    ["an offset", { timezone: "+02:00" }, "body.timezone"],
    ["no zone", { timezone: "" }, "body.timezone"],
    ["null for the zone", { timezone: null }, "body.timezone"],
    ["null for the footer", { reply_footer: null }, "body.reply_footer"],
    ["a text for the footer", { reply_footer: "no" }, "body.reply_footer"],
  ];
  test.each(bad)("refuses %s", async (_name, body, path) => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    const answer = await browser.send("PATCH", "/auth/profile", body);
    expect([answer.status, answer.body.errors?.[0]?.path]).toEqual([422, path]);
  });

  test("takes a name of 100 characters", async () => {
    await using t = await testApp();
    const ada = await t.as(ADA);
    const name = "😀".repeat(100);
    expect((await ada.patch("/auth/profile", { name })).body.name).toBe(name);
  });

  test("a reply ends with the footer unless its owner wants none", async () => {
    await using room = await mailroom();
    for (const reply_footer of [true, false]) {
      await room.owner.patch("/auth/profile", { reply_footer });
      await room.send({ text: "Summarise this" });
      await room.drain();
      const reply = Buffer.from((await room.outgoing()).at(-1)?.raw ?? []).toString();
      expect(reply.includes("Sent by AI on behalf of Desk")).toBe(reply_footer);
    }
  });
});

describe("API keys", () => {
  test("a key is shown once, works at once, and the owner is told", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    const made = await browser.post("/auth/api-key", { name: " laptop " });
    expect(made.status).toBe(200);
    expect(made.headers.get("cache-control")).toBe("no-store");
    const { key, ...rest } = made.body;
    expect(key).toMatch(/^mw_live_[0-9A-Za-z]{46}$/);
    expect(rest).toEqual({
      id: expect.any(String),
      name: "laptop",
      prefix: key.slice(0, 12),
      last4: key.slice(-4),
      created: t.app.now(),
      replaced: [],
    });
    const { replaced: _none, ...listed } = rest;
    expect((await browser.get("/auth/api-keys")).body).toEqual([
      { ...listed, last_used_at: null, last_used_ip: null },
    ]);
    const used = await t.request("/auth/me", {
      headers: { "x-api-key": key, "x-forwarded-for": "192.0.2.9" },
    });
    expect(used.body.email).toBe(ADA);
    await t.app.write(async () => {});
    expect((await browser.get("/auth/api-keys")).body[0]).toMatchObject({
      last_used_at: t.app.now(),
      last_used_ip: "192.0.2.9",
    });
    expect((await subjectsTo(t, ADA)).at(-1)).toBe("A new API key for your Mailwright account");
    const letter = (await lettersTo(t, ADA)).at(-1) ?? "";
    expect(letter).toContain("laptop");
    expect(letter).not.toContain(key);
    const stored = JSON.stringify(await t.app.db.selectFrom("api_keys").selectAll().execute());
    expect(stored).not.toContain(key);
  });

  test("the body may be left out, be empty, or be null in its name", async () => {
    await using t = await testApp();
    const ada = await t.as(ADA);
    for (const body of [undefined, {}, { name: null }])
      expect((await ada.post("/auth/api-key", body)).body.name).toBeNull();
    for (const body of [{ name: "" }, { name: 7 }, { name: "x".repeat(101) }, "[]", "{"])
      expect([body, (await ada.post("/auth/api-key", body)).status]).toEqual([body, 422]);
  });

  test("on the Free plan a new key takes the place of the old one, also of two at the same time", async () => {
    await using t = await testApp({ plans: { default: "free" } });
    const browser = await signIn(t, ADA);
    const first = (await browser.post("/auth/api-key")).body;
    const second = (await browser.post("/auth/api-key")).body;
    expect(second.replaced).toEqual([first.id]);
    expect((await t.request("/auth/me", { headers: { "x-api-key": first.key } })).status).toBe(401);
    const made = await Promise.all([1, 2, 3].map(() => browser.post("/auth/api-key")));
    expect(made.map(({ status }) => status)).toEqual([200, 200, 200]);
    const [left, ...others] = (await browser.get("/auth/api-keys")).body;
    expect(others).toEqual([]);
    const living = made.filter(({ body }) => body.id === left.id);
    expect(living).toHaveLength(1);
    expect((await t.request("/auth/me", { headers: { "x-api-key": living[0]?.body.key } })).status).toBe(200);
  });

  test("a paid plan holds as many as it allows, also when two are made at the same time", async () => {
    await using t = await testApp({ plans: { default: "pro", pro: { api_keys: 3 } } });
    const browser = await signIn(t, ADA);
    await browser.post("/auth/api-key");
    await browser.post("/auth/api-key");
    const made = await Promise.all([1, 2].map(() => browser.post("/auth/api-key")));
    expect(made.map(({ status }) => status).sort()).toEqual([200, 403]);
    const refused = made.find(({ status }) => status === 403);
    expect(refused?.body).toMatchObject({ code: "plan_limit_reached", limit: 3, current: 3 });
    expect((await browser.get("/auth/api-keys")).body).toHaveLength(3);
  });

  test("a key is revoked on a paid plan only, and only by its owner", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    const { id, key } = (await browser.post("/auth/api-key")).body;
    const bob = await t.as("bob@example.com");
    expect((await bob.delete(`/auth/api-keys/${id}`)).status).toBe(404);
    expect((await bob.delete(`/auth/api-keys/${Bun.randomUUIDv7()}`)).status).toBe(404);
    expect((await bob.delete("/auth/api-keys/nonsense")).body.errors[0].path).toBe("path.key_id");
    await setPlan(t.app, { email: ADA, plan: "free" });
    const refused = await browser.send("DELETE", `/auth/api-keys/${id}`);
    expect([refused.status, refused.body.code, refused.body.required_plan]).toEqual([
      403,
      "plan_required",
      "pro",
    ]);
    await setPlan(t.app, { email: ADA, plan: "pro" });
    expect((await browser.send("DELETE", `/auth/api-keys/${id}`)).status).toBe(204);
    expect((await t.request("/auth/me", { headers: { "x-api-key": key } })).status).toBe(401);
    expect((await browser.send("DELETE", `/auth/api-keys/${id}`)).status).toBe(404);
  });

  test("keys that are refused use up none of the mails about those that are made", async () => {
    await using t = await testApp({ plans: { pro: { api_keys: 1 } } });
    const ada = await t.as(ADA);
    await setPlan(t.app, { email: ADA, plan: "pro" });
    for (let turn = 0; turn < 12; turn++) expect((await ada.post("/auth/api-key")).status).toBe(403);
    expect(await subjectsTo(t, ADA)).toEqual([]);
    await setPlan(t.app, { email: ADA, plan: "free" });
    expect((await ada.post("/auth/api-key")).status).toBe(200);
    expect(await subjectsTo(t, ADA)).toEqual(["A new API key for your Mailwright account"]);
  });

  test("at most ten mails about new keys and passwords are sent in an hour", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    for (let turn = 0; turn < 12; turn++) expect((await browser.post("/auth/api-key")).status).toBe(200);
    expect((await subjectsTo(t, ADA)).filter((subject) => subject.includes("API key"))).toHaveLength(10);
  });

  test("how many more there were is told in one mail within the hour, and once", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    const told = async () => {
      await t.drain();
      return (await subjectsTo(t, ADA)).filter((subject) => subject.startsWith("More API keys"));
    };
    for (let turn = 0; turn < 13; turn++) expect((await browser.post("/auth/api-key")).status).toBe(200);
    t.clock.advance("59m");
    expect(await told()).toEqual([]);
    t.clock.advance("1m");
    expect(await told()).toHaveLength(1);
    const letter = (await lettersTo(t, ADA)).at(-1);
    expect(letter).toContain("API keys were made for your account 3 times more within an hour");
    t.clock.advance("2h");
    expect(await told()).toHaveLength(1);
    for (let turn = 0; turn < 11; turn++) await browser.post("/auth/api-key");
    t.clock.advance("1h");
    expect(await told()).toHaveLength(2);
    expect((await lettersTo(t, ADA)).at(-1)).toContain("once more");
  });

  test("what comes while the mail about more of it is written is told in the next one", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    const makeKeys = async (count: number) => {
      for (let turn = 0; turn < count; turn++) await browser.post("/auth/api-key");
    };
    await makeKeys(12);
    const claimed = { status: "running", attempts: 1, lease_until: t.app.steadyAfter(60) } as const;
    const jobs = t.app.db.updateTable("jobs").set(claimed).where("kind", "=", "sum_up_notices");
    const [row] = await jobs.returningAll().execute();
    if (!row) throw new Error("nothing is to be summed up");
    await makeKeys(3);
    const payload = JSON.parse(row.payload) as JobPayloads["sum_up_notices"];
    const use = { share: null, weight: 0, target: null };
    const job = { id: row.id, kind: "sum_up_notices", payload, attempts: 1, failures: 0, ...use } as const;
    await sumUpNow(t.app, job, new AbortController().signal);
    expect((await lettersTo(t, ADA)).at(-1)).toContain("2 times more");
    t.clock.advance("1h");
    await t.drain();
    expect((await lettersTo(t, ADA)).at(-1)).toContain("3 times more");
  });
});

describe("security events", () => {
  test("tell what happened to an account, newest first, and to no other", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    await browser.post("/auth/set-password", { password: "quiet river 42" });
    await openBrowser(t, "198.51.100.6").post("/auth/login", { email: ADA, password: "wrong guess 1" });
    await browser.post("/auth/login", { email: ADA, password: "quiet river 42" });
    await browser.send("DELETE", "/auth/account", { confirm: ADA, password: "wrong guess 2" });
    const { id } = (await browser.post("/auth/api-key")).body;
    await browser.send("DELETE", `/auth/api-keys/${id}`);
    const { body } = await browser.get("/auth/security-events");
    expect(body.map((event: { kind: string }) => event.kind)).toEqual([
      "api_key_revoked",
      "api_key_created",
      "password_failed",
      "password_sign_in",
      "password_failed",
      "password_set",
      "code_sign_in",
    ]);
    expect(body[4]).toMatchObject({ client: "198.51.100.6", created: t.app.now() });
    const bob = await t.as("bob@example.com");
    expect((await bob.get("/auth/security-events")).body).toMatchObject([{ kind: "api_key_created" }]);
  });

  test("repeats within an hour are counted, by key and client", async () => {
    await using t = await testApp();
    const { browser, note } = await noting(t);
    for (const client of ["198.51.100.6", "198.51.100.7", "198.51.100.6"]) await note(client);
    t.clock.advance("59m");
    await note("198.51.100.6");
    t.clock.advance("1m");
    await note("198.51.100.6");
    const { body } = await browser.get("/auth/security-events");
    const failed = body.filter(({ kind }: Event) => kind === "password_failed");
    expect(failed.map(({ client, times }: Event) => [client, times])).toEqual([
      ["198.51.100.6", 1],
      ["198.51.100.7", 1],
      ["198.51.100.6", 3],
    ]);
  });

  test("of each kind the first of 30 days and the last are kept, and what is between them is counted", async () => {
    await using t = await testApp();
    const { browser, note } = await noting(t);
    const failed = async () => {
      const events = (await browser.get("/auth/security-events")).body as Event[];
      return events.filter(({ kind }) => kind === "password_failed").toReversed();
    };
    await note("key", "api_key_created");
    for (let turn = 0; turn < 50; turn++) await note(String(turn));
    await note("15");
    const kept = await failed();
    expect(kept.map(({ client }) => client)).toEqual([
      ...Array.from({ length: 10 }, (_, turn) => String(turn)),
      ...Array.from({ length: 9 }, (_, turn) => String(41 + turn)),
      "15",
    ]);
    expect(kept.map(({ left_out }) => left_out)).toEqual([...Array(9).fill(0), 31, ...Array(10).fill(0)]);
    // A month later they are no longer how it began.
    t.clock.advance("31d");
    const later = await signIn(t, ADA, browser);
    for (let turn = 0; turn < 12; turn++) await note(`later ${turn}`);
    expect((await failed()).map(({ client }) => client).slice(0, 10)).toEqual([
      ...Array.from({ length: 7 }, (_, turn) => String(43 + turn)),
      "15",
      "later 0",
      "later 1",
    ]);
    const { body } = await later.get("/auth/security-events");
    expect(body.map(({ kind }: Event) => kind)).toContain("api_key_created");
    expect(await t.app.db.selectFrom("security_events").selectAll().execute()).toHaveLength(body.length);
  });
});

describe("from the shell", () => {
  test("a new password is set, and nobody stays signed in", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    await resetPassword(t.app, { email: ADA, password: "quiet river 42" });
    expect((await browser.get("/auth/me")).status).toBe(401);
    const login = await browser.post("/auth/login", { email: ADA, password: "quiet river 42" });
    expect(login.status).toBe(200);
  });

  test("a key is revoked by its id or its last characters, if they name one", async () => {
    await using t = await testApp();
    const ada = await t.as(ADA);
    const second = await createApiKey(t.app, { email: ADA });
    const named = (name: string) => createApiKey(t.app, { email: ADA, name }).catch(messageOf);
    expect([await named(" "), await named("x".repeat(101))]).toEqual([
      "A name must not be blank.",
      "A name has at most 100 characters.",
    ]);
    expect(await revokeApiKeyOf(t.app, { email: ADA, key: second.last4 })).toBe(second.id);
    const [first] = (await ada.get("/auth/api-keys")).body;
    const fault = await revokeApiKeyOf(t.app, { email: ADA, key: "none" }).catch(messageOf);
    expect(fault).toBe("No key of ada@example.com has this id, or these last four characters.");
    expect(await revokeApiKeyOf(t.app, { email: ADA, key: first.id })).toBe(first.id);
    expect((await ada.get("/auth/me")).status).toBe(401);
  });

  test("an account that waits for its first code becomes verified, but gets no key before", async () => {
    await using t = await testApp();
    await openBrowser(t).post("/auth/request-code", { email: ADA });
    await t.drain();
    expect(await createApiKey(t.app, { email: ADA }).catch(messageOf)).toContain("Verify the mail address");
    const ada = await t.as(ADA);
    expect(ada.user).toMatchObject({ email_verified: 1, is_admin: 1 });
    expect((await ada.get("/auth/me")).body.email_verified).toBe(true);
  });
});

async function noting(t: TestApp) {
  const browser = await signIn(t, ADA);
  const { id: user_id } = await t.app.db.selectFrom("users").select("id").executeTakeFirstOrThrow();
  const note = (client: string, kind: SecurityEvent["kind"] = "password_failed") =>
    t.app.write((tx) => noteSecurityEvent(t.app, tx, { user_id, kind, client }));
  return { browser, note };
}
