import { afterAll, expect, test } from "bun:test";
import { mcpServerOf } from "../../src/resources/connections/mcp-server.ts";
import { openSealed } from "../../src/resources/connections/sealed.ts";
import { freshToken } from "../../src/resources/integrations/tokens.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { comeBack, isQuestion, press, sessionOf } from "../support/consent.ts";
import { startGuardedMcp } from "../support/oauth-mcp-server.ts";
import { mayWrite } from "../support/refused-writes.ts";
import { openBrowser } from "./browser.ts";
import { until } from "../support/until.ts";

const LOOPBACK = { egress: { allow: ["127.0.0.1"] } };
const guarded = await startGuardedMcp();
afterAll(() => guarded[Symbol.asyncDispose]());

test("an MCP server is authorised: found, registered with, agreed to, used", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await mcpConnection(ada, guarded.url);
  expect((await ada.post(`/connections/${id}/test`)).body.error.code).toBe("needs_auth");
  const departure = await connect(ada, id);
  expect([departure.status, departure.body.url]).toEqual([200, departure.body.authorize_url]);
  const asked = new URL(departure.body.authorize_url).searchParams;
  expect(Object.fromEntries(asked)).toMatchObject({
    response_type: "code",
    resource: guarded.url,
    code_challenge_method: "S256",
    redirect_uri: "http://mw.test/integrations/mcp/callback",
    scope: "tools:read offline_access",
    prompt: "consent",
  });
  const arrival = await comeBack(t, ada, await guarded.agree(departure.body.authorize_url));
  expect([arrival.status, arrival.body.includes("?connected=mcp")]).toEqual([200, true]);
  const registration = guarded.asked.find(({ path }) => path === "/reg");
  expect(JSON.parse(registration?.body ?? "")).toMatchObject({
    client_name: "Mailwright",
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
  });
  const exchange = new URLSearchParams(guarded.asked.findLast(({ path }) => path === "/token")?.body);
  expect(exchange.get("resource")).toBe(guarded.url);
  const [connection] = (await ada.get("/connections")).body;
  expect(connection).toMatchObject({ status: "ok", auth: "oauth", config: null });
  expect(connection.expires_at).toBeGreaterThan(t.app.now());
  const tested = await ada.post(`/connections/${id}/test`);
  expect(tested.body).toMatchObject({ ok: true, tools: ["look"] });
});

test("what the consent to an MCP server brought is kept in memory while the disk does not take it", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await mcpConnection(ada, guarded.url);
  const departure = await connect(ada, id);
  const back = await guarded.agree(departure.body.authorize_url);
  const { fetch: ask } = t.app;
  t.app.fetch = async (url, init) => {
    if (String(url).endsWith("/token")) await mayWrite(t, false);
    return ask(url, init);
  };
  expect((await comeBack(t, ada, back)).body).toContain("do not connect again");
  expect((await ada.get("/connections")).body[0].has_credential).toBe(false);
  await mayWrite(t, true);
  await until(async () => (await ada.get("/connections")).body[0].status === "ok");
  expect((await ada.post(`/connections/${id}/test`)).body).toMatchObject({ ok: true, tools: ["look"] });
});

test("tokens are renewed for the same resource, rotate, and end in needs_auth once they are withdrawn", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await authorised(t, ada);
  const before = await sealedOf(t, id);
  const token = await freshToken(t.app, id, before.credential);
  const after = await sealedOf(t, id);
  expect([token, token === before.credential]).toEqual([after.credential, false]);
  expect(after.oauth?.refresh_token).not.toBe(before.oauth?.refresh_token ?? "");
  const refresh = new URLSearchParams(guarded.asked.findLast(({ path }) => path === "/token")?.body);
  expect([refresh.get("grant_type"), refresh.get("resource")]).toEqual(["refresh_token", guarded.url]);
  expect((await ada.post(`/connections/${id}/test`)).body.ok).toBe(true);
  // The old refresh token is spent: whoever still holds it gets the whole grant ended.
  const stolen = await fetch(`${guarded.issuer}/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "refresh_token",
      refresh_token: before.oauth?.refresh_token ?? "",
      client_id: before.oauth?.server?.client.id ?? "",
    }),
  });
  expect(stolen.status).toBe(400);
  expect(await freshToken(t.app, id, after.credential)).toBeNull();
  expect((await ada.get("/connections")).body[0].status).toBe("needs_auth");
  const mails = await t.app.db.selectFrom("outgoing_mails").select("raw").execute();
  expect(mails).toHaveLength(1);
  expect(
    Buffer.from(mails[0]?.raw ?? [])
      .toString()
      .replaceAll("=\r\n", ""),
  ).toContain("/app/connections and connect it again");
});

test("connecting again uses the client that is registered already", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await authorised(t, ada);
  const { client } = (await sealedOf(t, id)).oauth?.server ?? {};
  const again = new URL((await connect(ada, id)).body.authorize_url);
  expect(again.searchParams.get("client_id")).toBe(client?.id ?? "");
  expect((await t.request(await guarded.agree(again.href))).status).toBe(200);
  expect((await ada.get("/connections")).body).toHaveLength(1);
});

test("deleting the connection gives its tokens back", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await authorised(t, ada);
  const { oauth } = await sealedOf(t, id);
  expect((await ada.delete(`/connections/${id}`)).status).toBe(204);
  const revoked = new URLSearchParams(
    guarded.asked.findLast(({ path }) => path === "/token/revocation")?.body,
  );
  expect(revoked.get("token")).toBe(oauth?.refresh_token ?? "");
});

test("deleting the account gives them back as well", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await authorised(t, ada);
  const { oauth } = await sealedOf(t, id);
  const gone = await openBrowser(t).send(
    "DELETE",
    "/auth/account",
    { confirm: "ada@example.com" },
    { "x-api-key": ada.key },
  );
  expect(gone.status).toBe(204);
  const revoked = new URLSearchParams(
    guarded.asked.findLast(({ path }) => path === "/token/revocation")?.body,
  );
  expect(revoked.get("token")).toBe(oauth?.refresh_token ?? "");
});

test("a session is not kept for whoever agrees next, but for a token that is renewed", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await authorised(t, ada);
  const identity = async () => {
    const { transport } = mcpServerOf(t.app, await rowOf(t, id), (refused) => freshToken(t.app, id, refused));
    return transport.kind === "http" ? transport.identity : undefined;
  };
  const first = await identity();
  t.clock.advance("2h");
  const { credential } = await sealedOf(t, id);
  expect(await freshToken(t.app, id)).not.toBe(credential);
  expect(await identity()).toBe(first);
  const { body } = await connect(ada, id);
  expect((await comeBack(t, ada, await guarded.agree(body.authorize_url))).status).toBe(200);
  expect(await identity()).not.toBe(first);
});

test("an answer in the name of another authorization server is refused before the code goes anywhere", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await mcpConnection(ada, guarded.url);
  for (const change of [
    (url: URL) => url.searchParams.set("iss", "https://attacker.example"),
    (url: URL) => url.searchParams.delete("iss"),
  ]) {
    const back = new URL(await guarded.agree((await connect(ada, id)).body.authorize_url), "http://mw.test");
    expect(back.searchParams.get("iss")).toBe(guarded.issuer);
    change(back);
    const exchanges = guarded.asked.filter(({ path }) => path === "/token").length;
    expect((await comeBack(t, ada, back.pathname + back.search)).status).toBe(400);
    expect(guarded.asked.filter(({ path }) => path === "/token")).toHaveLength(exchanges);
  }
  expect((await ada.get("/connections")).body[0].has_credential).toBe(false);
});

test("a token is not stored with a connection that has become another one meanwhile", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const moved = await mcpConnection(ada, guarded.url);
  const back = await guarded.agree((await connect(ada, moved)).body.authorize_url);
  await ada.patch(`/connections/${moved}`, { base_url: "https://attacker.example/mcp" });
  const page = await comeBack(t, ada, back);
  expect([page.status, page.body.includes("changed meanwhile")]).toEqual([400, true]);
  expect((await ada.get("/connections")).body[0].has_credential).toBe(false);
  const deleted = await mcpConnection(ada, guarded.url);
  const late = await guarded.agree((await connect(ada, deleted)).body.authorize_url);
  await ada.delete(`/connections/${deleted}`);
  expect((await comeBack(t, ada, late)).status).toBe(400);
});

test("a consent to an MCP server ends only with its account: asked about, or after a sign-in", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const id = await mcpConnection(ada, guarded.url);
  const { body } = await connect(ada, id);
  const back = await guarded.agree(body.authorize_url);
  const exchanges = () => guarded.asked.filter(({ path }) => path === "/token").length;
  const before = exchanges();
  const open = async (cookie: string) => t.request(back, { headers: { cookie } });
  expect((await open("")).body).toContain("Sign in to go on");
  expect((await open(await sessionOf(t, await t.as("eve@example.com")))).status).toBe(400);
  const cookie = await sessionOf(t, ada);
  const page = await open(cookie);
  expect(isQuestion(page)).toBe(true);
  expect(page.body).toContain(`Connect Tools (${new URL(guarded.url).host})?`);
  expect([exchanges(), (await ada.get("/connections")).body[0].has_credential]).toEqual([before, false]);
  const done = await press(t, page, { cookie });
  expect([done.status, done.body.includes("?connected=mcp")]).toEqual([200, true]);
  expect(exchanges()).toBe(before + 1);
});

test("what a session began with an MCP server it ends once it has read who gets the access", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const headers = { cookie: await sessionOf(t, ada) };
  const id = await mcpConnection(ada, guarded.url);
  const { body } = await t.request(`/integrations/mcp/${id}/connect`, { method: "POST", headers });
  const page = await t.request(await guarded.agree(body.authorize_url), { headers });
  expect(page.body).toContain(`sent to ${new URL(guarded.issuer).host} to agree`);
  expect(page.body).toContain(`goes to ${new URL(guarded.url).host}`);
  const arrival = await press(t, page, headers);
  expect([arrival.status, arrival.body.includes("?connected=mcp")]).toEqual([200, true]);
});

test("only one's own connections to MCP servers can be authorised", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const foreign = await connect(bob, await mcpConnection(ada, guarded.url));
  const unknown = await connect(bob, Bun.randomUUIDv7());
  expect([foreign.status, unknown.status]).toEqual([404, 404]);
  expect({ ...foreign.body, request_id: "" }).toEqual({ ...unknown.body, request_id: "" });
  const { body: demo } = await ada.post("/connections", { kind: "demo" });
  const other = await connect(ada, demo.id);
  expect([other.status, other.body.errors[0].code]).toEqual([422, "not_mcp"]);
  expect((await connect(ada, "nonsense")).status).toBe(422);
});

test("a program of this machine needs no authorisation", async () => {
  await using t = await testApp({ mcp: { stdio: { files: { command: "files" } } } });
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "mcp", base_url: "stdio:files" });
  const answer = await connect(ada, body.id);
  expect([answer.status, answer.body.errors[0].code]).toEqual([422, "no_oauth"]);
});

test("a pasted token is kept until a new one is there", async () => {
  await using t = await testApp(LOOPBACK);
  const ada = await t.as("ada@example.com");
  const input = { kind: "mcp", base_url: guarded.url, credential: "pasted-token" };
  const { body } = await ada.post("/connections", input);
  const departure = await connect(ada, body.id);
  expect((await sealedOf(t, body.id)).credential).toBe("pasted-token");
  await comeBack(t, ada, await guarded.agree(departure.body.authorize_url));
  expect((await ada.get("/connections")).body[0].auth).toBe("oauth");
});

test("this server describes itself as a client only where the internet can read it", async () => {
  await using t = await testApp();
  const path = "/integrations/mcp/client-metadata.json";
  for (const base_url of ["http://mail.acme.org", "https://mail.local", "https://10.0.0.1", "https://mail"]) {
    t.app.listensAt(base_url);
    expect((await t.request(path)).status).toBe(404);
  }
  t.app.listensAt("https://mail.acme.org");
  const { status, body } = await t.request(path);
  expect([status, body.client_id]).toEqual([200, `https://mail.acme.org${path}`]);
  expect(body.redirect_uris).toEqual(["https://mail.acme.org/integrations/mcp/callback"]);
});

async function mcpConnection(caller: Caller, base_url: string): Promise<string> {
  return (await caller.post("/connections", { kind: "mcp", label: "Tools", base_url })).body.id;
}

function connect(caller: Caller, id: string) {
  return caller.post(`/integrations/mcp/${id}/connect`);
}

async function authorised(t: TestApp, caller: Caller): Promise<string> {
  const id = await mcpConnection(caller, guarded.url);
  const { body } = await connect(caller, id);
  expect((await comeBack(t, caller, await guarded.agree(body.authorize_url))).status).toBe(200);
  return id;
}

async function sealedOf(t: TestApp, id: string) {
  return openSealed(t.app, await rowOf(t, id));
}

function rowOf(t: TestApp, id: string) {
  return t.app.db.selectFrom("connections").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
}
