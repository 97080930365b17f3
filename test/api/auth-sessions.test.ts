import { expect, test } from "bun:test";
import { mintApiKey } from "../../src/lib/secrets.ts";
import { testApp } from "../support/app.ts";
import { freshCode, openBrowser, signIn } from "./browser.ts";
import { LISTEN, openDoor } from "./door.ts";

const ADA = "ada@example.com";

test("the cookie is HttpOnly and SameSite=Lax, lasts 30 days, and is Secure where people come by https", async () => {
  for (const base_url of ["http://mw.test", "https://mw.test"]) {
    await using t = await testApp();
    t.app.listensAt(base_url);
    const code = await freshCode(t, ADA);
    const answer = await openBrowser(t).post("/auth/verify", { email: ADA, code });
    const secure = base_url.startsWith("https") ? "; Secure" : "";
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        new RegExp(
          `^service_session=[\\w-]{43}\\.[\\w-]{22}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax${secure}$`,
        ),
      ),
      expect.stringMatching(/^mw_known=/),
    ]);
    const registered = await openBrowser(t).post("/auth/register", {
      email: ADA,
      password: "quiet river 42",
    });
    expect(registered.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        new RegExp(`^mw_registration=[\\w-]{43}; Path=/; Max-Age=900; HttpOnly; SameSite=Lax${secure}$`),
      ),
      expect.stringMatching(/^mw_code=/),
    ]);
  }
});

test("a session opens the same endpoints as an API key, also under the cookie's other name", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const browser = await signIn(t, ADA);
  expect((await browser.post("/inboxes", { label: "Desk" })).status).toBe(201);
  expect((await browser.post("/v1/messages", { instruction: "Summarise" })).status).toBe(200);
  const value = browser.cookies.get("service_session") ?? "";
  const alias = (cookie: string) => t.request("/auth/me", { headers: { cookie } });
  expect((await alias(`session=${value}`)).status).toBe(200);
  expect((await alias(`a=b; service_session=${value}; c`)).status).toBe(200);
  expect((await alias(`service_session=; session=${value}`)).status).toBe(200);
  expect((await alias(`xservice_session=${value}`)).status).toBe(401);
});

test("a cookie that was changed, shortened, made up or swapped is no session", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  const value = browser.cookies.get("service_session") ?? "";
  const [token = "", mac = ""] = value.split(".");
  const flip = (text: string) => (text.startsWith("A") ? "B" : "A") + text.slice(1);
  const [session] = await t.app.db.selectFrom("sessions").selectAll().execute();
  for (const cookie of [
    `${flip(token)}.${mac}`,
    `${token}.${flip(mac)}`,
    token,
    `${token}.`,
    `.${mac}`,
    "",
    "x",
    session?.id ?? "",
    `${value}.x${value}`.slice(1),
  ]) {
    const answer = await t.request("/auth/me", { headers: { cookie: `service_session=${cookie}` } });
    expect([cookie, answer.status]).toEqual([cookie, 401]);
  }
  expect((await browser.get("/auth/me")).status).toBe(200);
});

test("what is stored of a session does not open it", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  const rows = JSON.stringify(await t.app.db.selectFrom("sessions").selectAll().execute());
  const [token = ""] = (browser.cookies.get("service_session") ?? "").split(".");
  expect(rows).not.toContain(token);
});

test("a session ends after auth.session_days, and its row goes with the next sign-in", async () => {
  await using t = await testApp({ auth: { session_days: 2 } });
  const browser = await signIn(t, ADA);
  t.clock.advance("47h");
  expect((await browser.get("/auth/me")).status).toBe(200);
  t.clock.advance("1h");
  expect((await browser.get("/auth/me")).status).toBe(401);
  await signIn(t, "bob@example.com");
  expect(await t.app.db.selectFrom("sessions").selectAll().execute()).toHaveLength(1);
});

test("an API key that is sent is the only credential, however good the cookie is", async () => {
  await using t = await testApp();
  const bob = await t.as("bob@example.com");
  const browser = await signIn(t, ADA);
  for (const headers of [
    { "x-api-key": mintApiKey().key },
    { "x-api-key": "" },
    { authorization: `Bearer ${mintApiKey().key}` },
  ] as Record<string, string>[])
    expect((await browser.get("/auth/me", headers)).status).toBe(401);
  expect((await browser.get("/auth/me", { "x-api-key": bob.key })).body.email).toBe("bob@example.com");
});

test("a page of another site can read nothing into a session, and write nothing with it", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  const foreign: Record<string, string>[] = [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://mw.test.evil.example" },
    { origin: "http://mw.test:8080" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site", origin: "http://mw.test" },
  ];
  for (const headers of foreign)
    for (const [method, path] of [
      ["PATCH", "/auth/profile"],
      ["POST", "/auth/api-key"],
      ["DELETE", "/auth/account"],
    ] as const) {
      const answer = await browser.send(method, path, { name: "Eve", confirm: ADA }, headers);
      expect([headers, path, answer.status, answer.body.code]).toEqual([headers, path, 403, "cross_origin"]);
    }
  for (const headers of [
    {},
    { origin: "http://mw.test" },
    { "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "none" },
    { "sec-fetch-site": "same-origin", origin: "https://mw.test" },
  ] as Record<string, string>[])
    expect((await browser.send("PATCH", "/auth/profile", { name: "Ada" }, headers)).status).toBe(200);
  expect((await browser.get("/auth/me", { "sec-fetch-site": "cross-site" })).status).toBe(200);
  const ada = await t.as("key@example.com");
  const answer = await t.request("/auth/api-key", {
    method: "POST",
    headers: { "x-api-key": ada.key, origin: "https://evil.example", "sec-fetch-site": "cross-site" },
  });
  expect(answer.status).toBe(200);
});

test("a page of another site signs nobody out", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ]) {
    const answer = await browser.post("/auth/logout", undefined, headers);
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([403, null]);
  }
  const me = await browser.get("/auth/me");
  expect([me.status, me.headers.get("cache-control")]).toEqual([200, "private, no-store"]);
});

test("logout ends the session and clears the cookie, and never fails", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  const cookie = `service_session=${browser.cookies.get("service_session")}`;
  const answer = await browser.post("/auth/logout");
  expect([answer.status, answer.body]).toEqual([204, ""]);
  expect(answer.headers.getSetCookie()).toEqual([
    "service_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax",
  ]);
  expect((await t.request("/auth/me", { headers: { cookie } })).status).toBe(401);
  const requests: RequestInit[] = [
    {},
    { headers: { cookie } },
    { headers: { cookie: "service_session=nonsense", "x-api-key": "nonsense" } },
    { headers: { "content-type": "application/json" }, body: "{ not json" },
    { headers: { "content-type": "text/plain" }, body: "x" },
    { body: "{}" },
  ];
  for (const init of requests)
    expect((await t.request("/auth/logout", { method: "POST", ...init })).status).toBe(204);
});

test("a sign-in notes the address and the browser it came from", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const code = await freshCode(t, ADA);
  const answer = await door.request("/auth/verify", {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": `Mozilla ${"x".repeat(300)}` },
    body: JSON.stringify({ email: ADA, code }),
  });
  expect(answer.status).toBe(200);
  const [session] = await t.app.db.selectFrom("sessions").selectAll().execute();
  expect(session?.client).toMatch(/127\.0\.0\.1$/);
  expect(session?.user_agent).toHaveLength(200);
});

test("an address proves nothing about a password, whatever is in front of the server", async () => {
  for (const trusted_proxies of [[], ["127.0.0.0/8", "::ffff:127.0.0.0/104"]])
    for (const forwarded of [undefined, "192.0.2.7"]) {
      await using t = await testApp({ server: { ...LISTEN, trusted_proxies } });
      await using door = await openDoor(t);
      const post = (path: string, body: unknown) =>
        door.request(path, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(forwarded === undefined ? {} : { "x-forwarded-for": forwarded }),
          },
          body: JSON.stringify(body),
        });
      await post("/auth/register", { email: ADA, password: "quiet river 42" });
      const me = await post("/auth/verify", { email: ADA, code: await freshCode(t, ADA) });
      expect([me.status, me.body.has_password]).toEqual([200, false]);
      await post("/auth/register", { email: ADA, password: "quiet river 42" });
      const again = { email: ADA, code: await freshCode(t, ADA), password: "quiet river 42" };
      expect((await post("/auth/verify", again)).body.has_password).toBe(true);
    }
});

test("no session of an account that is not verified any more is one", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  await t.app.db.updateTable("users").set({ email_verified: 0 }).execute();
  expect((await browser.get("/auth/me")).status).toBe(401);
});
