import { expect, test } from "bun:test";
import { createEmulator } from "emulate";
import { openSealed } from "../../src/resources/connections/sealed.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { comeBack, formOf, isQuestion, press, sessionOf } from "../support/consent.ts";
import { type OAuthProviders, type ProviderKind, startOAuthProviders } from "../support/oauth-providers.ts";

const KINDS: ProviderKind[] = ["notes", "codehost-a", "codehost-b", "sheets"];

test.each(KINDS)("an account at %s is connected, and its token is nowhere to be read", async (kind) => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const departure = await connect(ada, kind);
  expect(departure.headers.get("cache-control")).toBe("no-store");
  expect(departure.body.url).toBe(departure.body.authorize_url);
  const back = await providers.agree(departure.body.authorize_url);
  const arrival = await comeBack(t, ada, back);
  expect(arrival.status).toBe(200);
  expect(arrival.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(arrival.body).toContain(
    `<meta http-equiv="refresh" content="1;url=http://mw.test/app/connections?connected=${kind}">`,
  );
  expect(arrival.headers.get("content-security-policy")).toStartWith("default-src 'none'");
  expect(arrival.headers.get("cache-control")).toBe("no-store");
  expect(arrival.headers.get("referrer-policy")).toBe("no-referrer");
  const [connection] = (await ada.get("/connections")).body;
  expect(connection).toMatchObject({
    kind,
    auth: "oauth",
    status: "ok",
    has_credential: true,
    config: null,
    base_url: null,
    expires_at: t.app.now() + 3_600,
  });
  expect(connection.label).toMatch(/\((Notes of )?ada(@example\.com)?\)$/);
  const { credential, oauth } = await sealedOf(t);
  expect(credential).toStartWith(`${kind}-access-`);
  expect(oauth?.refresh_token === null).toBe(kind === "codehost-a");
  expect(JSON.stringify(connection)).not.toContain(credential);
});

test("each provider is asked as it wants to be", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  for (const kind of KINDS) await roundTrip(t, ada, providers, kind);
  const asked = providers.consents.map((consent) => Object.fromEntries(consent));
  expect(asked[0]).toMatchObject({ owner: "user", response_type: "code" });
  expect(asked[0]).not.toHaveProperty("code_challenge");
  expect(asked[1]).toMatchObject({ scope: "repo read:user", code_challenge_method: "S256" });
  expect(asked[2]).toMatchObject({ scope: "api", code_challenge_method: "S256" });
  expect(asked[3]).toMatchObject({
    scope: expect.stringContaining("https://www.googleapis.com/auth/drive.file"),
    access_type: "offline",
    prompt: "consent",
    code_challenge_method: "S256",
  });
  for (const [index, kind] of KINDS.entries())
    expect(asked[index]).toMatchObject({
      redirect_uri: `http://mw.test/integrations/${kind}/callback`,
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
  const [first] = providers.asked;
  expect(first?.content_type).toBe("application/json");
  expect(first?.authorization).toStartWith("Basic ");
});

test("connecting the same account again renews its connection; another account gets one of its own", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  for (const kind of KINDS) {
    await roundTrip(t, ada, providers, kind);
    await roundTrip(t, ada, providers, kind);
  }
  expect((await ada.get("/connections")).body).toHaveLength(4);
  providers.person = "grace";
  for (const kind of KINDS) await roundTrip(t, ada, providers, kind);
  expect((await ada.get("/connections")).body).toHaveLength(8);
  const bob = await t.as("bob@example.com");
  await roundTrip(t, bob, providers, "notes");
  expect((await bob.get("/connections")).body).toHaveLength(1);
});

test("a pasted token is never taken for the connection of an account", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const { body: pasted } = await ada.post("/connections", { kind: "notes", credential: "ntn_pasted_token" });
  await roundTrip(t, ada, providers, "notes");
  const all = (await ada.get("/connections")).body;
  expect(all).toHaveLength(2);
  expect(all[0]).toEqual(pasted);
});

test("without an OAuth client it is 400, and says which keys are missing and that a token can be pasted", async () => {
  await using t = await testApp({ integrations: { sheets: { client_id: "x" } } });
  const ada = await t.as("ada@example.com");
  const { status, body } = await connect(ada, "notes");
  expect([status, body.code]).toEqual([400, "oauth_not_configured"]);
  expect(body.detail).toContain("integrations.notes.client_id and integrations.notes.client_secret");
  expect(body.fix).toContain("`POST /connections` with the kind notes");
  const half = await connect(ada, "sheets");
  expect(half.body.detail).toContain("integrations.sheets.client_secret is not set");
});

test("an address of one's own never goes together with those of the public provider", async () => {
  const own = { client_id: "x", client_secret: "y", api_base: "https://gitlab.acme.test" };
  await using t = await testApp({ integrations: { "codehost-b": own } });
  const { status, body } = await connect(await t.as("ada@example.com"), "codehost-b");
  expect(status).toBe(400);
  expect(body.detail).toContain("authorize_url and integrations.codehost-b.token_url are not set");
});

test("the defaults lead to the real providers", async () => {
  const client = { client_id: "x", client_secret: "y" };
  const integrations = { notes: client, "codehost-a": client, "codehost-b": client, sheets: client };
  await using t = await testApp({ integrations });
  const ada = await t.as("ada@example.com");
  const places: string[] = [];
  for (const kind of KINDS) {
    const url = new URL((await connect(ada, kind)).body.authorize_url);
    places.push(url.origin + url.pathname);
  }
  expect(places).toEqual([
    "https://api.notion.com/v1/oauth/authorize",
    "https://github.com/login/oauth/authorize",
    "https://gitlab.com/oauth/authorize",
    "https://accounts.google.com/o/oauth2/v2/auth",
  ]);
});

test("the way through GitHub works with a stand-in that others wrote", async () => {
  const callback = "http://mw.test/integrations/codehost-a/callback";
  const client = { client_id: "client-id", client_secret: "client-secret" };
  const app = { ...client, name: "Mailwright", redirect_uris: [callback] };
  const seed = { github: { users: [{ login: "octocat" }], oauth_apps: [app] } };
  const github = await createEmulator({ service: "github", port: 0, seed });
  await using _ = { [Symbol.asyncDispose]: () => github.close() };
  const login = `${github.url}/login/oauth`;
  const endpoints = { authorize_url: `${login}/authorize`, token_url: `${login}/access_token` };
  const integrations = { "codehost-a": { ...client, ...endpoints, api_base: github.url } };
  await using t = await testApp({ integrations, egress: { allow: ["127.0.0.1"] } });
  const ada = await t.as("ada@example.com");
  const wanted = new URL((await connect(ada, "codehost-a")).body.authorize_url).searchParams;
  expect((await fetch(`${login}/authorize?${wanted.toString()}`)).status).toBe(200);
  // The button of one of the people on its page.
  const agreed = await fetch(`${login}/callback`, {
    method: "POST",
    body: new URLSearchParams({ login: "octocat", ...Object.fromEntries(wanted) }),
    redirect: "manual",
  });
  const back = new URL(agreed.headers.get("location") ?? "");
  expect((await comeBack(t, ada, back.pathname + back.search)).status).toBe(200);
  const [connection] = (await ada.get("/connections")).body;
  expect(connection).toMatchObject({ label: "GitHub (octocat)", status: "ok", expires_at: null });
  expect((await ada.post(`/connections/${connection.id}/test`)).body.account).toBe("octocat");
});

test.each(["dropbox", "mcp", "toString", "__proto__", "Notes"])("%s is no provider", async (name) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const connecting = await ada.post(`/integrations/${name}/connect`);
  expect([connecting.status, connecting.body.code]).toEqual([404, "not_found"]);
  if (name !== "mcp")
    expect((await t.request(`/integrations/${name}/callback?code=a&state=b`)).status).toBe(404);
});

test("a state is good once, even for two who come at the same moment", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const cookie = await sessionOf(t, ada);
  const headers = { cookie };
  const departure = await t.request("/integrations/notes/connect", { method: "POST", headers });
  const back = await providers.agree(departure.body.authorize_url);
  const both = await Promise.all([t.request(back, { headers }), t.request(back, { headers })]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
  expect((await t.request(back, { headers })).status).toBe(400);
  expect(providers.asked.filter(({ path }) => path === "token")).toHaveLength(1);
  expect((await ada.get("/connections")).body).toHaveLength(1);
});

test("an unknown, a missing, an old and a misplaced state are refused alike, and nothing is asked", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const old = await providers.agree((await connect(ada, "notes")).body.authorize_url);
  t.clock.advance("10m");
  const misplaced = await providers.agree((await connect(ada, "notes")).body.authorize_url);
  const pages = await Promise.all(
    [
      "/integrations/notes/callback?code=x&state=unknown",
      "/integrations/notes/callback?code=x",
      "/integrations/notes/callback",
      "/integrations/notes/callback?error=access_denied&state=unknown",
      old,
      misplaced.replace("/notes/", "/sheets/"),
      misplaced.replace("/notes/", "/mcp/"),
    ].map((path) => t.request(path)),
  );
  expect(new Set(pages.map(({ status }) => status))).toEqual(new Set([400]));
  expect(new Set(pages.map(({ body }) => body)).size).toBe(1);
  expect(providers.asked).toEqual([]);
  expect((await comeBack(t, ada, misplaced)).body).toContain("is connected");
});

test("a round trip that a browser began ends at once in its session, and in no other one unasked", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const eve = await t.as("eve@example.com");
  const browser = await sessionOf(t, ada);
  const departure = await leave(t, "notes", browser);
  expect(departure.headers.get("set-cookie")).toBeNull();
  const back = await providers.agree(departure.body.authorize_url);
  const open = (cookie: string) => t.request(back, { headers: { cookie } });
  expect((await open("")).body).toContain("Sign in to go on");
  expect(isQuestion(await open(await sessionOf(t, ada)))).toBe(true);
  expect((await open(await sessionOf(t, eve))).status).toBe(400);
  expect(providers.asked).toEqual([]);
  expect((await open(browser)).body).toContain("is connected");
  expect((await ada.get("/connections")).body).toHaveLength(1);
});

test("two pages of one session can be on their way at the same time", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const cookie = await sessionOf(t, await t.as("ada@example.com"));
  const backs: string[] = [];
  for (const kind of ["notes", "sheets"])
    backs.push(await providers.agree((await leave(t, kind, cookie)).body.authorize_url));
  for (const back of backs)
    expect((await t.request(back, { headers: { cookie } })).body).toContain("is connected");
});

test("what was begun with a key is asked about: what, by which key, for which account", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const { body: named } = await ada.post("/auth/api-key", { name: "<b>laptop</b>" });
  const departure = await t.request("/integrations/notes/connect", {
    method: "POST",
    headers: { "x-api-key": named.key },
  });
  const back = await providers.agree(departure.body.authorize_url);
  t.clock.advance("3m");
  const cookie = await sessionOf(t, ada);
  const page = await t.request(back, { headers: { cookie } });
  expect(page.status).toBe(200);
  expect(page.body).toContain("Connect Notion?");
  expect(page.body).toContain("a connection of ada@example.com");
  expect(page.body).toContain(
    `with the API key &lt;b&gt;laptop&lt;/b&gt; (${named.prefix}…${named.last4}), 3 min ago`,
  );
  expect(page.headers.get("content-security-policy")).toContain("form-action 'self'");
  expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  // Without one a browser would call the origin of the form "null".
  expect(page.headers.get("referrer-policy")).toBe("same-origin");
  expect(formOf(page).action).toBe("/integrations/notes/confirm");
  expect(providers.asked).toEqual([]);
  expect((await ada.get("/connections")).body).toEqual([]);
  const done = await press(t, page, { cookie, origin: "http://mw.test", "sec-fetch-site": "same-origin" });
  expect([done.status, done.body.includes("?connected=notes")]).toEqual([200, true]);
  expect((await press(t, page, { cookie })).status).toBe(400);
  expect((await ada.get("/connections")).body).toHaveLength(1);
});

test("who is not signed in is led through the sign-in and back, for as long as the state is good", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const back = await providers.agree((await connect(ada, "sheets")).body.authorize_url);
  const page = await t.request(back);
  expect([page.status, page.body.includes("Sign in to go on")]).toEqual([200, true]);
  const [, link = ""] = /href="([^"]*sign-in[^"]*)"/.exec(page.body) ?? [];
  const to = new URL(link.replaceAll("&amp;", "&")).searchParams.get("to") ?? "";
  expect(new URL(to, "http://mw.test").searchParams.toString()).toBe(
    new URL(back, "http://mw.test").searchParams.toString(),
  );
  t.clock.advance("9m");
  expect((await comeBack(t, ada, to)).body).toContain("is connected");
  const late = await providers.agree((await connect(ada, "sheets")).body.authorize_url);
  expect((await t.request(late)).status).toBe(200);
  t.clock.advance("10m");
  expect((await comeBack(t, ada, late)).status).toBe(400);
});

test("who does not agree is told that nothing happened, and the state is used up", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const state = stateOf(await connect(ada, "notes"));
  const path = `/integrations/notes/callback?error=access_denied&state=${state}`;
  const page = await t.request(path);
  expect([page.status, page.body.includes("did not agree")]).toEqual([200, true]);
  expect(page.body).not.toContain("http-equiv");
  expect((await t.request(path)).status).toBe(400);
  expect((await ada.get("/connections")).body).toEqual([]);
});

test("what a provider says in its redirect is shown as text only", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const words = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`;
  const state = stateOf(await connect(ada, "notes"));
  const page = await t.request(
    `/integrations/notes/callback?error=${encodeURIComponent(words)}&state=${state}&code=x`,
  );
  expect(page.status).toBe(400);
  expect(page.body).toContain("&lt;script&gt;");
  expect(page.body).not.toMatch(/<script|<img|onerror=alert\(1\)>/);
  expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
  expect(providers.asked).toEqual([]);
});

test("a redirect without a code, or with a code that the provider does not know, connects nothing", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  for (const kind of KINDS) {
    const bare = `/integrations/${kind}/callback?state=${stateOf(await connect(ada, kind))}`;
    expect((await t.request(bare)).body).toContain("no code");
    const wrong = `/integrations/${kind}/callback?code=wrong&state=${stateOf(await connect(ada, kind))}`;
    const page = await comeBack(t, ada, wrong);
    expect(page.status).toBe(400);
    expect(page.body).toMatch(/It said: (invalid_grant|bad_verification_code)/);
    expect(page.body).not.toContain("<b>");
  }
  expect((await ada.get("/connections")).body).toEqual([]);
});

test.each<[string, () => Response]>([
  ["a web page", () => new Response("<html>hello</html>", { headers: { "content-type": "text/html" } })],
  ["no token", () => Response.json({ token_type: "bearer" })],
  ["a list", () => Response.json([])],
  ["a fault of its own", () => new Response("oops", { status: 503 })],
  ["a redirect", () => Response.redirect("http://169.254.169.254/", 302)],
  ["a token of another type", () => Response.json({ access_token: "a", token_type: "mac" })],
  ["a token that bends headers", () => Response.json({ access_token: "a\r\nX: y", token_type: "bearer" })],
  ["far too much", () => Response.json({ access_token: "a".repeat(300_000), token_type: "bearer" })],
])("a token endpoint that answers with %s connects nothing", async (_name, answer) => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const back = await providers.agree((await connect(ada, "codehost-b")).body.authorize_url);
  providers.instead = answer;
  const page = await comeBack(t, ada, back);
  expect([page.status, page.body.includes("could not be exchanged")]).toEqual([400, true]);
  expect((await ada.get("/connections")).body).toEqual([]);
});

test("a new account counts against the plan's connections, one that is renewed does not", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp({
    ...providers.config,
    plans: { default: "free", free: { connections: 1 } },
  });
  const ada = await t.as("ada@example.com");
  await roundTrip(t, ada, providers, "notes");
  await roundTrip(t, ada, providers, "notes");
  const back = await providers.agree((await connect(ada, "sheets")).body.authorize_url);
  const page = await comeBack(t, ada, back);
  expect([page.status, page.body.includes("This server allows you 1 connection;")]).toEqual([400, true]);
  expect((await ada.get("/connections")).body).toHaveLength(1);
});

test("at most 20 round trips of an account are open, and old ones are swept away", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const count = async () => (await t.app.db.selectFrom("oauth_states").select("user_id").execute()).length;
  await connect(bob, "notes");
  const first = stateOf(await connect(ada, "notes"));
  t.clock.advance("1s");
  for (let index = 0; index < 22; index += 1) await connect(ada, "notes");
  expect(await count()).toBe(21);
  expect((await t.request(`/integrations/notes/callback?state=${first}&code=x`)).status).toBe(400);
  t.clock.advance("10m");
  await connect(ada, "notes");
  expect(await count()).toBe(1);
});

test("the database shows neither a state nor its verifier", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const state = stateOf(await connect(await t.as("ada@example.com"), "codehost-b"));
  const row = await t.app.db.selectFrom("oauth_states").selectAll().executeTakeFirstOrThrow();
  expect(row.state_hash).toMatch(/^[\da-f]{64}$/);
  expect(Buffer.from(row.sealed).includes("verifier")).toBe(false);
  expect(JSON.stringify(row)).not.toContain(state);
});

test("a connection made by OAuth cannot be pointed elsewhere with its token", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  await roundTrip(t, ada, providers, "notes");
  const [{ id }] = (await ada.get("/connections")).body;
  for (const change of [
    { base_url: "https://attacker.example" },
    { base_url: "https://attacker.example", headers: {} },
    { base_url: `${providers.config.integrations?.notes?.api_base}/other` },
  ]) {
    const answer = await ada.patch(`/connections/${id}`, change);
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "body.base_url"]);
  }
  const own = { base_url: "https://attacker.example", credential: "another-token" };
  expect((await ada.patch(`/connections/${id}`, own)).body.auth).toBe("key");
  expect(await sealedOf(t)).toEqual({ credential: "another-token", headers: {} });
});

test("changing only the headers keeps the tokens", async () => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  await roundTrip(t, ada, providers, "notes");
  const before = await sealedOf(t);
  const [{ id }] = (await ada.get("/connections")).body;
  const patched = await ada.patch(`/connections/${id}`, { headers: { "X-Team": "mail" } });
  expect(patched.body).toMatchObject({ auth: "oauth", has_credential: true });
  expect(await sealedOf(t)).toEqual({ ...before, headers: { "X-Team": "mail" } });
});

test.each(KINDS)("deleting a connection to %s gives its tokens back", async (kind) => {
  await using providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  await roundTrip(t, ada, providers, kind);
  const { credential, oauth } = await sealedOf(t);
  const [{ id }] = (await ada.get("/connections")).body;
  expect((await ada.delete(`/connections/${id}`)).status).toBe(204);
  const last = providers.asked.at(-1);
  const github = kind === "codehost-a";
  expect(last?.path).toBe(github ? "applications/client-id/token" : "revoke");
  expect(last?.body).toMatchObject(
    github ? { access_token: credential } : { token: oauth?.refresh_token ?? "" },
  );
  if (github || kind === "notes") expect(last?.authorization).toStartWith("Basic ");
});

test("a provider that is gone does not keep a connection from being deleted", async () => {
  const providers = startOAuthProviders();
  await using t = await testApp(providers.config);
  const ada = await t.as("ada@example.com");
  await roundTrip(t, ada, providers, "notes");
  await providers[Symbol.asyncDispose]();
  const [{ id }] = (await ada.get("/connections")).body;
  expect((await ada.delete(`/connections/${id}`)).status).toBe(204);
  expect((await ada.get("/connections")).body).toEqual([]);
});

function connect(caller: Caller, kind: string) {
  return caller.post(`/integrations/${kind}/connect`);
}

function leave(t: TestApp, kind: string, cookie: string) {
  return t.request(`/integrations/${kind}/connect`, { method: "POST", headers: { cookie } });
}

async function roundTrip(t: TestApp, caller: Caller, providers: OAuthProviders, kind: ProviderKind) {
  const { body } = await connect(caller, kind);
  const arrival = await comeBack(t, caller, await providers.agree(body.authorize_url));
  expect([kind, arrival.status]).toEqual([kind, 200]);
}

function stateOf({ body }: Awaited<ReturnType<typeof connect>>): string {
  return new URL(body.authorize_url).searchParams.get("state") ?? "";
}

async function sealedOf(t: TestApp) {
  const row = await t.app.db
    .selectFrom("connections")
    .selectAll()
    .orderBy("id", "desc")
    .executeTakeFirstOrThrow();
  return openSealed(t.app, row);
}
