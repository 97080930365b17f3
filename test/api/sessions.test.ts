import { expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { openBrowser, signIn } from "./browser.ts";

test("the browsers that are signed in are listed, the newest first, with the one that asks marked", async () => {
  await using t = await testApp();
  const phone = await signIn(t, "ada@example.com", openBrowser(t, "192.0.2.8"));
  const began = t.app.now();
  const laptop = await signIn(t, "ada@example.com", openBrowser(t, "192.0.2.9"));
  const { status, body } = await phone.get("/auth/sessions");
  expect(status).toBe(200);
  expect(body).toEqual([
    expect.objectContaining({ client: "192.0.2.9", current: false }),
    {
      id: expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/),
      created: began,
      expires: began + 30 * 86_400,
      client: "192.0.2.8",
      user_agent: "",
      current: true,
    },
  ]);
  const seen = (await laptop.get("/auth/sessions")).body as { current: boolean }[];
  expect(seen.map(({ current }) => current)).toEqual([true, false]);
});

test("an API key sees the sessions too, none of them its own", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  expect((await ada.get("/auth/sessions")).body).toEqual([]);
  await signIn(t, "ada@example.com");
  const sessions = (await ada.get("/auth/sessions")).body as { current: boolean }[];
  expect(sessions.map(({ current }) => current)).toEqual([false]);
});

test("what is shown of a session signs nobody in", async () => {
  await using t = await testApp();
  const browser = await signIn(t, "ada@example.com");
  const { body } = await browser.get("/auth/sessions");
  const value = browser.cookies.get("service_session") ?? "?";
  expect(JSON.stringify(body)).not.toContain(value.slice(0, 20));
  const stranger = openBrowser(t);
  stranger.cookies.set("service_session", body[0].id);
  expect((await stranger.get("/auth/me")).status).toBe(401);
});

test("another browser is signed out, and this one stays", async () => {
  await using t = await testApp();
  const phone = await signIn(t, "ada@example.com");
  const laptop = await signIn(t, "ada@example.com", openBrowser(t));
  const sessions = (await laptop.get("/auth/sessions")).body as { id: string; current: boolean }[];
  const other = sessions.find(({ current }) => !current)?.id ?? "";
  const ended = await laptop.send("DELETE", `/auth/sessions/${other}`);
  expect([ended.status, ended.headers.getSetCookie()]).toEqual([204, []]);
  expect((await phone.get("/auth/me")).status).toBe(401);
  expect((await laptop.get("/auth/me")).status).toBe(200);
  const again = await laptop.send("DELETE", `/auth/sessions/${other}`);
  expect([again.status, again.body.code]).toEqual([404, "not_found"]);
});

test("ending one's own session is a logout", async () => {
  await using t = await testApp();
  const browser = await signIn(t, "ada@example.com");
  const [{ id }] = (await browser.get("/auth/sessions")).body;
  const cookie = browser.cookies.get("service_session") ?? "";
  const ended = await browser.send("DELETE", `/auth/sessions/${id.toUpperCase()}`);
  expect(ended.status).toBe(204);
  expect(browser.cookies.has("service_session")).toBe(false);
  browser.cookies.set("service_session", cookie);
  expect((await browser.get("/auth/me")).status).toBe(401);
});

test("a session of another account, and one that has expired, is not found", async () => {
  await using t = await testApp({ auth: { session_days: 1 } });
  const ada = await signIn(t, "ada@example.com");
  const [{ id }] = (await ada.get("/auth/sessions")).body;
  const bob = await t.as("bob@example.com");
  const foreign = await bob.delete(`/auth/sessions/${id}`);
  expect([foreign.status, (await ada.get("/auth/me")).status]).toEqual([404, 200]);
  t.clock.advance("1d");
  const later = await signIn(t, "ada@example.com");
  expect((await later.get("/auth/sessions")).body).toHaveLength(1);
  expect((await later.send("DELETE", `/auth/sessions/${id}`)).status).toBe(404);
});

test("who sends a key that is not known is told so, and who sends none that one is needed", async () => {
  await using t = await testApp();
  const ask = async (headers: Record<string, string>) => (await t.request("/inboxes", { headers })).body;
  for (const headers of [{ "x-api-key": "mw_live_mistyped" }, { authorization: "Bearer mw_live_mistyped" }])
    expect(await ask(headers)).toMatchObject({
      status: 401,
      code: "unauthorized",
      detail: expect.stringContaining("The API key that was sent is not known here"),
      fix: expect.stringContaining("Compare it with the keys"),
    });
  for (const headers of [{}, { "x-api-key": "" }])
    expect(await ask(headers)).toMatchObject({
      detail: expect.stringContaining("This needs a valid API key"),
    });
});
