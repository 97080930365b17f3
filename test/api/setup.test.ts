import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { createVerifiedUser } from "../../src/resources/accounts/accounts.ts";
import { offerSetup } from "../../src/resources/accounts/setup.ts";
import { type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";
import { createLog, type Log } from "../../src/lib/log.ts";
import { serve } from "../../src/serve.ts";
import { VERSION } from "../../src/lib/version.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { freshCode, openBrowser, signIn } from "./browser.ts";

const PASSWORD = "quiet river 42";

test("the link of a first start makes the first account, verified and administrator, and signs in", async () => {
  await using t = await testApp();
  const token = await tokenOf(t);
  const browser = openBrowser(t);
  expect((await browser.get("/setup")).body).toEqual({ needed: true });
  const made = await browser.post("/setup", {
    token,
    email: " Ada@Example.com ",
    password: PASSWORD,
    name: "Ada",
  });
  expect([made.status, made.headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(made.body).toMatchObject({
    email: "ada@example.com",
    email_verified: true,
    is_admin: true,
    has_password: true,
    name: "Ada",
  });
  expect((await browser.get("/auth/me")).body).toEqual(made.body);
  expect((await browser.get("/admin/overview")).status).toBe(200);
  expect((await browser.get("/setup")).body).toEqual({ needed: false });
  const login = await openBrowser(t).post("/auth/login", { email: "ada@example.com", password: PASSWORD });
  expect(login.status).toBe(200);
  const events = (await browser.get("/auth/security-events")).body as { kind: string }[];
  expect(events.map(({ kind }) => kind)).toContain("set_up");
});

test("a password and a name may be left out, and a code signs in later", async () => {
  await using t = await testApp();
  const made = await openBrowser(t).post("/setup", { token: await tokenOf(t), email: "ada@example.com" });
  expect(made.body).toMatchObject({ has_password: false, name: null, is_admin: true });
  const browser = await signIn(t, "ada@example.com");
  expect((await browser.get("/auth/me")).body.id).toBe(made.body.id);
});

test("the link works once, and not any more once there is an account, however that came", async () => {
  await using t = await testApp();
  const token = await tokenOf(t);
  await openBrowser(t).post("/setup", { token, email: "ada@example.com" });
  for (const given of [token, "wrong"]) {
    const again = await openBrowser(t).post("/setup", { token: given, email: "eve@example.com" });
    expect([again.status, again.body.code]).toEqual([409, "conflict"]);
  }
  // Not even when that account is gone.
  await t.app.write((tx) => tx.updateTable("users").set({ email_verified: 0 }).execute());
  const late = await openBrowser(t).post("/setup", { token, email: "eve@example.com" });
  expect([late.status, late.body.code]).toEqual([401, "invalid_code"]);

  await using other = await testApp();
  const unused = await tokenOf(other);
  await createVerifiedUser(other.app, { email: "ada@example.com" });
  expect((await other.request("/setup")).body).toEqual({ needed: false });
  const refused = await openBrowser(other).post("/setup", { token: unused, email: "eve@example.com" });
  expect(refused.status).toBe(409);
});

test("two at once make one administrator", async () => {
  await using t = await testApp();
  const token = await tokenOf(t);
  const names = ["ada", "bob", "eve", "joe"];
  const answers = await Promise.all(
    names.map((name) =>
      openBrowser(t).post("/setup", { token, email: `${name}@example.com`, password: PASSWORD }),
    ),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
  const users = await t.app.db.selectFrom("users").select(["is_admin", "email_verified"]).execute();
  expect(users).toEqual([{ is_admin: 1, email_verified: 1 }]);
});

test("a wrong token, one of an earlier start, and one where none was given are refused in words", async () => {
  await using t = await testApp();
  const send = (token: string) => openBrowser(t).post("/setup", { token, email: "ada@example.com" });
  const none = await send("anything");
  expect([none.status, none.body.code, none.body.detail]).toEqual([
    401,
    "invalid_code",
    "This setup link is wrong, or is not the newest one.",
  ]);
  const early = await tokenOf(t);
  const late = await tokenOf(t);
  for (const token of [early, late.slice(1), `${late}x`, late.toLowerCase()])
    expect([token, (await send(token)).status]).toEqual([token, 401]);
  expect((await t.request("/setup")).body).toEqual({ needed: true });
  expect(await t.app.db.selectFrom("users").selectAll().execute()).toEqual([]);
  expect((await send(late)).status).toBe(200);
});

test("a bad body makes nothing, and the link stays good", async () => {
  await using t = await testApp();
  const token = await tokenOf(t);
  const bad: [string, object][] = [
    ["body.token", { email: "ada@example.com" }],
    ["body.token", { token: "", email: "ada@example.com" }],
    ["body.token", { token: "x".repeat(101), email: "ada@example.com" }],
    ["body.email", { token }],
    ["body.email", { token, email: null }],
    ["body.email", { token, email: "nobody" }],
    ["body.password", { token, email: "ada@example.com", password: "short" }],
    ["body.password", { token, email: "ada@example.com", password: "password" }],
    ["body.name", { token, email: "ada@example.com", name: " " }],
    ["body.name", { token, email: "ada@example.com", name: 7 }],
  ];
  for (const [path, body] of bad) {
    const answer = await openBrowser(t).post("/setup", body);
    expect([path, answer.status, answer.body.errors?.[0]?.path]).toEqual([path, 422, path]);
  }
  expect((await openBrowser(t).post("/setup", { token, email: "ada@example.com" })).status).toBe(200);
});

test("where the configuration names the administrator, nobody else becomes one", async () => {
  await using t = await testApp({ auth: { admin_email: "Root@Example.com" } });
  const token = await tokenOf(t);
  const other = await openBrowser(t).post("/setup", { token, email: "ada@example.com" });
  expect([other.status, other.body.errors[0].code]).toEqual([422, "not_administrator"]);
  expect(JSON.stringify(other.body).toLowerCase()).not.toContain("root@example.com");
  const named = await openBrowser(t).post("/setup", { token, email: "root@example.com" });
  expect([named.status, named.body.is_admin]).toEqual([200, true]);
});

test("what somebody chose or was mailed for the address before opens nothing", async () => {
  await using t = await testApp();
  const code = await freshCode(t, "ada@example.com");
  await openBrowser(t, "198.51.100.9").post("/auth/register", {
    email: "ada@example.com",
    password: PASSWORD,
  });
  await openBrowser(t).post("/setup", { token: await tokenOf(t), email: "ada@example.com" });
  const verified = await openBrowser(t).post("/auth/verify", { email: "ada@example.com", code });
  const login = await openBrowser(t).post("/auth/login", { email: "ada@example.com", password: PASSWORD });
  expect([verified.status, login.status]).toEqual([401, 401]);
});

test("guessing is limited by the hour and the client's network", async () => {
  await using t = await testApp({ limits: { verify_per_ip_hour: 3 } });
  const guess = async (client: string) =>
    (await openBrowser(t, client).post("/setup", { token: "x", email: "a@example.com" })).status;
  const near = "192.0.2.7";
  expect([await guess(near), await guess(near), await guess(near), await guess(near)]).toEqual([
    401, 401, 401, 429,
  ]);
  expect(await guess("198.51.100.9")).toBe(401);
});

test("a start shows a new link while there is no account, keeps none, and is silent afterwards", async () => {
  await using folder = await dataFolder();
  const first = await startAndStop(folder.config);
  const second = await startAndStop(folder.config);
  const [one, two] = [linkIn(first), linkIn(second)];
  expect(one).toMatch(/^https:\/\/mail\.example\.com\/app\/setup\?token=[\w-]{43}$/);
  expect(two).not.toBe(one);
  expect([first.filter((line) => line.includes("token=")), second.length > 0]).toEqual([
    [expect.stringContaining(one ?? "?")],
    true,
  ]);
  const third = await startAndStop(folder.config, async (url, lines) => {
    const token = linkIn(lines)?.split("=")[1];
    const made = await fetch(`${url}/setup`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, email: "ada@example.com" }),
    });
    expect(made.status).toBe(200);
  });
  expect(third.filter((line) => line.includes("token="))).toHaveLength(1);
  expect(linkIn(await startAndStop(folder.config))).toBeUndefined();
});

test("anybody may know what the dashboard has to know before somebody signs in, and no more", async () => {
  await using t = await testApp({ auth: { registration: "closed" } });
  expect((await t.request("/server")).body).toEqual({
    version: VERSION,
    base_url: t.app.base_url,
    registration: "closed",
    domain: "mw.test",
    chosen_addresses: "own_domains",
    outbound_mode: "capture",
    payments: false,
    needs_setup: true,
  });
  await t.as("ada@example.com");
  expect((await t.request("/server")).body.needs_setup).toBe(false);
});

test("who is signed in is told without a refusal, and nobody is an answer too", async () => {
  await using t = await testApp();
  const browser = openBrowser(t);
  const asked = await browser.get("/auth/session");
  expect([asked.status, asked.body, asked.headers.get("cache-control")]).toEqual([
    200,
    { me: null },
    "no-store",
  ]);
  const made = await browser.post("/setup", { token: await tokenOf(t), email: "ada@example.com" });
  expect((await browser.get("/auth/session")).body).toEqual({ me: made.body });
  await browser.post("/auth/logout");
  expect((await browser.get("/auth/session")).body).toEqual({ me: null });
  const bob = await t.as("bob@example.com");
  expect((await bob.get("/auth/session")).body.me.email).toBe("bob@example.com");
  for (const headers of [{ "x-api-key": "nonsense" }, { cookie: "service_session=made-up" }])
    expect((await t.request("/auth/session", { headers })).body).toEqual({ me: null });
});

test("a start warns where a stranger with a code by mail could be faster than whoever has the link", async () => {
  const warned = async (config: ConfigOverrides): Promise<boolean> => {
    await using t = await testApp(config);
    const lines: string[] = [];
    await offerSetup({ ...t.app, log: noting(lines) });
    return lines.some((line) => line.includes("signs in first"));
  };
  const relay = { mode: "relay", relay_url: "smtp://127.0.0.1:9" } as const;
  expect(await warned({ outbound: relay })).toBe(true);
  expect(await warned({ outbound: relay, auth: { registration: "closed" } })).toBe(false);
  expect(await warned({})).toBe(false);
});

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["[::1]", "[::1]"],
  ["0.0.0.0", "localhost"],
])("a server that hears %s shows how its link is opened from another machine", async (listen, host) => {
  await using t = await testApp({ server: { listen: `${listen}:8080` } });
  const lines: string[] = [];
  await offerSetup({ ...t.app, base_url: `http://${host}:8080`, log: noting(lines) });
  expect(lines.join("\n")).toContain(`ssh -L 8080:${host}:8080 USER@THIS-MACHINE`);
});

async function tokenOf(t: TestApp): Promise<string> {
  const lines: string[] = [];
  await offerSetup({ ...t.app, log: noting(lines) });
  return linkIn(lines)?.split("token=")[1] ?? "";
}

function noting(lines: string[]): Log {
  const log = createLog({ level: "silent", format: "text" });
  const note = (...given: unknown[]) => void lines.push(given.map((one) => JSON.stringify(one)).join(" "));
  return Object.assign(Object.create(log) as Log, { info: note, warn: note, error: note });
}

function linkIn(lines: string[]): string | undefined {
  return lines.map((line) => /https?:\/\/\S+token=[\w-]+/.exec(line)?.[0]).find((link) => link !== undefined);
}

async function dataFolder() {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-setup-"));
  const config: ConfigOverrides = {
    data: { dir },
    database: { url: `sqlite:${join(dir, "mailwright.db")}` },
    server: { listen: "127.0.0.1:0", base_url: "https://mail.example.com" },
    smtp: { listen: "" },
  };
  return { config, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

/** Returns what was logged. */
async function startAndStop(
  config: ConfigOverrides,
  act: (url: string, lines: string[]) => Promise<void> = async () => {},
): Promise<string[]> {
  const lines: string[] = [];
  const server = await serve(defaultConfig(config), { log: noting(lines) });
  await act(server.http, lines);
  await server[Symbol.asyncDispose]();
  return lines;
}
