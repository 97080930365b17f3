import { expect, test } from "bun:test";
import { grantedColumns, openSealed } from "../../src/resources/connections/sealed.ts";
import { freshToken } from "../../src/resources/integrations/tokens.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { comeBack } from "../support/consent.ts";
import { answerMcp } from "../support/oauth-mcp-server.ts";
import {
  type AlteredServer,
  metadataOf,
  startAlteredServer,
  unauthorized,
} from "../support/oauth-altered-server.ts";

const RESOURCE = "/.well-known/oauth-protected-resource/mcp";
const SERVER = "/.well-known/oauth-authorization-server";
/** On the public internet, and never reached: plain http is refused before. */
const PUBLIC_HTTP = "http://93.184.215.14";

/** Somebody else's, and never opened. */
const ANOTHER_SITE = "https://93.184.215.14/authorize";

type Routes = AlteredServer["routes"];
type Failure = [string, Routes, { step: string; words: RegExp }];

const json =
  (make: (origin: string) => unknown): Routes[string] =>
  (_request, origin) =>
    Response.json(make(origin));
/** The same server by a name of its own. */
const named = (host: string, origin: string): string => `http://${host}:${new URL(origin).port}`;
const resource = (change: (origin: string) => object): Routes => ({
  [RESOURCE]: json((origin) => ({
    resource: `${origin}/mcp`,
    authorization_servers: [origin],
    ...change(origin),
  })),
});
const server = (change: Record<string, unknown>): Routes => ({
  [SERVER]: json((origin) => metadataOf(origin, change)),
});

const FAILURES: Failure[] = [
  ["needs no authorisation", { "/mcp": answerMcp }, { step: "probe", words: /without authorisation/ }],
  ["is broken", { "/mcp": () => new Response("", { status: 500 }) }, { step: "probe", words: /status 500/ }],
  [
    "names its metadata at a link-local address",
    { "/mcp": () => unauthorized('Bearer resource_metadata="http://169.254.169.254/latest/meta-data"') },
    { step: "resource_metadata", words: /not on the public internet/ },
  ],
  [
    "names its metadata over plain http",
    { "/mcp": () => unauthorized(`Bearer resource_metadata="${PUBLIC_HTTP}/meta"`) },
    { step: "resource_metadata", words: /Only https/ },
  ],
  [
    "names its metadata as a file",
    { "/mcp": () => unauthorized('Bearer resource_metadata="file:///etc/passwd"') },
    { step: "resource_metadata", words: /Only https/ },
  ],
  [
    "speaks for another host",
    resource(() => ({ resource: "https://evil.example/mcp" })),
    { step: "resource_metadata", words: /another server/ },
  ],
  [
    "speaks for another path",
    resource((origin) => ({ resource: `${origin}/other` })),
    { step: "resource_metadata", words: /another server/ },
  ],
  [
    "speaks for half a path",
    resource((origin) => ({ resource: `${origin}/mc` })),
    { step: "resource_metadata", words: /another server/ },
  ],
  [
    "speaks for no address",
    resource(() => ({ resource: "mcp" })),
    { step: "resource_metadata", words: /another server/ },
  ],
  [
    "has metadata that fails",
    { [RESOURCE]: () => new Response("", { status: 503 }) },
    { step: "resource_metadata", words: /503/ },
  ],
  [
    "has its authorization server at a link-local address",
    resource(() => ({ authorization_servers: ["https://169.254.169.254"] })),
    { step: "server_metadata", words: /not on the public internet/ },
  ],
  [
    "has its authorization server on plain http",
    resource(() => ({ authorization_servers: [PUBLIC_HTTP] })),
    { step: "server_metadata", words: /not https/ },
  ],
  [
    "has an authorization server that is a script",
    resource(() => ({ authorization_servers: ["javascript:alert(1)"] })),
    { step: "server_metadata", words: /no usable address/ },
  ],
  [
    "has metadata of another issuer",
    server({ issuer: "https://accounts.example" }),
    { step: "server_metadata", words: /that of another server/ },
  ],
  [
    "has no PKCE",
    server({ code_challenge_methods_supported: ["plain"] }),
    { step: "server_metadata", words: /PKCE/ },
  ],
  [
    "says nothing about PKCE",
    server({ code_challenge_methods_supported: undefined }),
    { step: "server_metadata", words: /PKCE/ },
  ],
  [
    "has no consent page",
    server({ grant_types_supported: ["client_credentials"] }),
    { step: "server_metadata", words: /consent page/ },
  ],
  [
    "gives out no codes",
    server({ response_types_supported: ["token"] }),
    { step: "server_metadata", words: /consent page/ },
  ],
  [
    "asks for consent by script",
    server({ authorization_endpoint: "javascript:alert(1)" }),
    { step: "server_metadata", words: /authorization_endpoint/ },
  ],
  [
    "asks for consent with a password in the address",
    server({ authorization_endpoint: "https://user:word@as.example/" }),
    { step: "server_metadata", words: /authorization_endpoint/ },
  ],
  [
    "asks for consent at another site",
    server({ authorization_endpoint: ANOTHER_SITE }),
    { step: "server_metadata", words: /consent page is at 93\.184\.215\.14, another site/ },
  ],
  [
    "asks for consent at another port of its address",
    server({ authorization_endpoint: "http://127.0.0.1:1/authorize" }),
    { step: "server_metadata", words: /another site/ },
  ],
  [
    "asks for consent at another name of its address",
    server({ authorization_endpoint: "http://localhost:1/authorize" }),
    { step: "server_metadata", words: /another site/ },
  ],
  [
    "asks for consent at another site, and says that its answers name it",
    server({
      authorization_endpoint: ANOTHER_SITE,
      authorization_response_iss_parameter_supported: true,
    }),
    { step: "server_metadata", words: /another site/ },
  ],
  [
    "asks for consent at another site, by OpenID discovery",
    {
      [SERVER]: () => new Response("", { status: 404 }),
      "/.well-known/openid-configuration": json((origin) =>
        metadataOf(origin, { authorization_endpoint: ANOTHER_SITE }),
      ),
    },
    { step: "server_metadata", words: /another site/ },
  ],
  [
    "asks for consent at another site, the old way",
    {
      [RESOURCE]: () => new Response("", { status: 404 }),
      ...server({ authorization_endpoint: ANOTHER_SITE }),
    },
    { step: "server_metadata", words: /another site/ },
  ],
  [
    "has the metadata of a tenant that asks for consent at another site",
    {
      ...resource((origin) => ({ authorization_servers: [`${origin}/tenant`] })),
      "/tenant/.well-known/openid-configuration": json((origin) =>
        metadataOf(`${origin}/tenant`, { authorization_endpoint: ANOTHER_SITE }),
      ),
    },
    { step: "server_metadata", words: /another site/ },
  ],
  [
    "has its authorization server at another site, which asks for consent at a third",
    {
      ...resource((origin) => ({ authorization_servers: [named("as.acme.localhost", origin)] })),
      [SERVER]: json((origin) =>
        metadataOf(named("as.acme.localhost", origin), {
          authorization_endpoint: named("as.other.localhost", origin),
        }),
      ),
    },
    { step: "server_metadata", words: /consent page is at as\.other\.localhost:\d+, another site/ },
  ],
  [
    "gives tokens out on plain http",
    server({ token_endpoint: `${PUBLIC_HTTP}/token` }),
    { step: "server_metadata", words: /not https/ },
  ],
  [
    "gives tokens out in the private network",
    server({ token_endpoint: "https://10.0.0.1/token" }),
    { step: "server_metadata", words: /not on the public internet/ },
  ],
  [
    "names no token endpoint",
    server({ token_endpoint: 7 }),
    { step: "server_metadata", words: /token_endpoint/ },
  ],
  [
    "registers clients in the private network",
    server({ registration_endpoint: "https://192.168.1.1/" }),
    { step: "server_metadata", words: /not on the public internet/ },
  ],
  [
    "has an authorization server that fails",
    { [SERVER]: () => new Response("", { status: 500 }) },
    { step: "server_metadata", words: /500/ },
  ],
  [
    "registers nobody",
    server({ registration_endpoint: undefined }),
    { step: "client_registration", words: /registers no clients/ },
  ],
  [
    "refuses to register",
    { "/register": () => Response.json({ error: "invalid_redirect_uri" }, { status: 400 }) },
    { step: "client_registration", words: /status 400.*invalid_redirect_uri/ },
  ],
  [
    "registers something else",
    { "/register": () => Response.json({ client_id: "a\r\nb" }) },
    { step: "client_registration", words: /no client/ },
  ],
  [
    "sends a registration elsewhere",
    { "/register": () => Response.redirect("http://169.254.169.254/", 307) },
    { step: "client_registration", words: /status 307/ },
  ],
];

test.each(FAILURES)(
  "a server that %s is not connected, and the answer says why",
  async (_name, routes, expected) => {
    await using scene = await beginning(routes);
    const { status, body } = await scene.connect();
    expect([status, body.code, body.step]).toEqual([400, "mcp_oauth_unavailable", expected.step]);
    expect(body.detail).toMatch(expected.words);
    expect(await scene.t.app.db.selectFrom("oauth_states").selectAll().execute()).toEqual([]);
    expect(scene.altered.exchange).toBeNull();
  },
);

test("the metadata is looked for where the standards say, in their order", async () => {
  await using scene = await beginning({
    ...resource((origin) => ({ authorization_servers: [`${origin}/tenant`] })),
    "/tenant/.well-known/openid-configuration": json((origin) => metadataOf(`${origin}/tenant`)),
  });
  expect((await scene.connect()).status).toBe(200);
  expect(scene.altered.seen).toEqual([
    "POST /mcp",
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /.well-known/oauth-authorization-server/tenant",
    "GET /.well-known/openid-configuration/tenant",
    "GET /tenant/.well-known/openid-configuration",
    "POST /register",
  ]);
});

test("a server that greets everybody is asked for its tools, and only then lets one know", async () => {
  await using scene = await beginning({
    "/mcp": async (request, origin) =>
      (await request.clone().text()).includes('"initialize"')
        ? answerMcp(request)
        : unauthorized(`Bearer scope="tools:use", resource_metadata="${origin}/anywhere"`),
    "/anywhere": json((origin) => ({ resource: `${origin}/mcp`, authorization_servers: [origin] })),
  });
  const { status, body } = await scene.connect();
  expect(status).toBe(200);
  expect(new URL(body.authorize_url).searchParams.get("scope")).toBe("tools:use");
});

test("the old transport is asked in its own way", async () => {
  await using scene = await beginning({
    "/mcp": (request) =>
      request.method === "GET" ? unauthorized("Bearer") : new Response("", { status: 405 }),
  });
  expect((await scene.connect()).status).toBe(200);
});

test("without any metadata the endpoints of custom are used", async () => {
  const page = () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } });
  await using scene = await beginning({ [RESOURCE]: page, [SERVER]: page });
  const { body } = await scene.connect();
  const url = new URL(body.authorize_url);
  expect([url.origin, url.pathname]).toEqual([scene.altered.origin, "/authorize"]);
  expect(url.searchParams.get("code_challenge_method")).toBe("S256");
  expect(url.searchParams.get("resource")).toBe(scene.altered.url);
  expect(url.searchParams.has("scope")).toBe(false);
  expect((await scene.comeBack(url)).status).toBe(200);
});

test("who shows the consent page may have its other endpoints at other sites, as large providers do", async () => {
  await using elsewhere = startAlteredServer();
  await using scene = await beginning(
    server({
      registration_endpoint: `${elsewhere.origin}/register`,
      token_endpoint: `${elsewhere.origin}/token`,
      revocation_endpoint: `${elsewhere.origin}/revoke`,
    }),
  );
  const { status, body } = await scene.connect();
  expect(status).toBe(200);
  expect((await scene.comeBack(new URL(body.authorize_url))).body).toContain("is connected");
  expect(elsewhere.exchange?.body.get("code")).toBe("x");
  expect(elsewhere.seen).toEqual(["POST /register", "POST /token"]);
  expect(scene.altered.exchange).toBeNull();
});

test.each<[string, (origin: string) => string]>([
  ["another host of the issuer's site", (origin) => named("login.acme.localhost", origin)],
  ["the site of the MCP server", (origin) => named("127.0.0.1", origin)],
])("the consent page may be at %s", async (_name, page) => {
  await using scene = await beginning({
    ...resource((origin) => ({ authorization_servers: [named("as.acme.localhost", origin)] })),
    [SERVER]: json((origin) =>
      metadataOf(named("as.acme.localhost", origin), { authorization_endpoint: `${page(origin)}/agree` }),
    ),
  });
  const { status, body } = await scene.connect();
  expect(status).toBe(200);
  const url = new URL(body.authorize_url);
  expect(url.origin + url.pathname).toBe(`${page(scene.altered.origin)}/agree`);
  expect((await scene.comeBack(url)).body).toContain("is connected");
});

test("a server without metadata that answers in another's name is not given the code", async () => {
  const none = () => new Response("", { status: 404 });
  await using scene = await beginning({ [RESOURCE]: none, [SERVER]: none });
  const { body } = await scene.connect();
  const url = new URL(body.authorize_url);
  expect((await scene.comeBack(url, "https://honest.example")).status).toBe(400);
  expect(scene.altered.exchange).toBeNull();
  const again = new URL((await scene.connect()).body.authorize_url);
  expect((await scene.comeBack(again, scene.altered.origin)).body).toContain("is connected");
});

test("what was connected to endpoints of several sites before is renewed as ever", async () => {
  await using scene = await beginning({
    "/token": async (request) => {
      const asked = new URLSearchParams(await request.text());
      const access_token = asked.get("refresh_token") === "long" ? "renewed" : "first";
      return Response.json({ access_token, token_type: "Bearer", refresh_token: "long", expires_in: 60 });
    },
  });
  const { t, id } = scene;
  const { body } = await scene.connect();
  await scene.comeBack(new URL(body.authorize_url));
  const before = await rowOf(t, id);
  const { oauth } = openSealed(t.app, before);
  if (!oauth?.server) throw new Error("nothing was connected");
  const old = { ...oauth, server: { ...oauth.server, authorization_endpoint: ANOTHER_SITE } };
  const columns = grantedColumns(t.app, before, { credential: "first", expires_at: t.app.now(), oauth: old });
  await t.app.db.updateTable("connections").set(columns).where("id", "=", id).execute();
  expect(await freshToken(t.app, id)).toBe("renewed");
});

test("a registration that is refused for its scope is tried without", async () => {
  await using scene = await beginning({
    ...resource(() => ({ scopes_supported: ["a", "b"] })),
    "/register": async (request) => {
      const about = (await request.json()) as Record<string, unknown>;
      scene.altered.registrations.push(about);
      return "scope" in about
        ? Response.json({ error: "invalid_client_metadata" }, { status: 400 })
        : Response.json({ client_id: "made", client_secret: "kept", client_secret_expires_at: 0 });
    },
  });
  const { body } = await scene.connect();
  expect(scene.altered.registrations.map(({ scope }) => scope)).toEqual(["a b", undefined]);
  const url = new URL(body.authorize_url);
  expect(url.searchParams.get("scope")).toBe("a b");
  expect((await scene.comeBack(url)).status).toBe(200);
  expect(scene.altered.exchange?.authorization).toBe(`Basic ${btoa("made:kept")}`);
});

test("a client that was registered by hand is used as it is", async () => {
  await using scene = await beginning(server({ registration_endpoint: undefined }), { client_id: "by-hand" });
  const { body } = await scene.connect();
  const url = new URL(body.authorize_url);
  expect(url.searchParams.get("client_id")).toBe("by-hand");
  expect((await scene.comeBack(url)).status).toBe(200);
  expect(scene.altered.exchange?.body.get("client_id")).toBe("by-hand");
});

test("the secret of such a client is never shown, and goes only to the issuer that its owner named", async () => {
  const config = { client_id: "by-hand", client_secret: "very-secret-words" };
  await using scene = await beginning({}, config);
  const { ada, id, altered } = scene;
  expect(JSON.stringify((await ada.get("/connections")).body)).not.toContain("very-secret");
  const refused = await scene.connect();
  expect([refused.status, refused.body.step]).toEqual([400, "client_registration"]);
  expect(refused.body.fix).toContain("config.issuer");
  // The settings as they are shown, with the issuer added: the secret stays.
  const shown = { client_id: "by-hand", issuer: altered.origin };
  expect((await ada.patch(`/connections/${id}`, { config: shown })).body.config).toEqual(shown);
  const { body } = await scene.connect();
  expect((await scene.comeBack(new URL(body.authorize_url))).status).toBe(200);
  expect(altered.exchange?.authorization).toBe(`Basic ${btoa("by-hand:very-secret-words")}`);
});

test("the secret of a client does not move to another server or to another client", async () => {
  await using scene = await beginning({}, { client_id: "by-hand", client_secret: "very-secret-words" });
  const { ada, id, altered } = scene;
  const moved = await ada.patch(`/connections/${id}`, { base_url: "https://attacker.example/mcp" });
  expect([moved.status, moved.body.errors[0].path]).toEqual([422, "body.config"]);
  const again = { client_id: "by-hand", client_secret: "very-secret-words" };
  const sent = { base_url: `${altered.origin}/mcp`, config: again };
  expect((await ada.patch(`/connections/${id}`, sent)).status).toBe(200);
  await ada.patch(`/connections/${id}`, { config: { client_id: "another", issuer: altered.origin } });
  const { body } = await scene.connect();
  await scene.comeBack(new URL(body.authorize_url));
  expect(altered.exchange?.authorization).toBeNull();
  const wrong = await ada.patch(`/connections/${id}`, { config: { client_id: "x", client_secret: 7 } });
  expect([wrong.status, wrong.body.errors[0].code]).toEqual([422, "invalid_client_secret"]);
});

test("naming another issuer takes the secret away, so that it goes to nobody it was not meant for", async () => {
  const config = { client_id: "by-hand", client_secret: "very-secret-words", issuer: "https://as.example" };
  await using scene = await beginning({}, config);
  const { ada, id, altered } = scene;
  expect((await scene.connect()).body.step).toBe("client_registration");
  await ada.patch(`/connections/${id}`, { config: { client_id: "by-hand", issuer: altered.origin } });
  const { body } = await scene.connect();
  await scene.comeBack(new URL(body.authorize_url));
  expect(altered.exchange?.authorization).toBeNull();
  expect(altered.exchange?.body.has("client_secret")).toBe(false);
});

test("a server that reads documents about clients is given the address of ours", async () => {
  await using scene = await beginning(server({ client_id_metadata_document_supported: true }));
  scene.t.app.listensAt("https://mail.acme.org");
  const { body } = await scene.connect();
  const client_id = new URL(body.authorize_url).searchParams.get("client_id");
  expect(client_id).toBe("https://mail.acme.org/integrations/mcp/client-metadata.json");
  expect(scene.altered.registrations).toEqual([]);
});

test("a server that is probed is shown neither the credential nor a header Authorization of the connection", async () => {
  const sent: Headers[] = [];
  await using scene = await beginning({
    "/mcp": (request) => {
      sent.push(request.headers);
      return unauthorized("Bearer");
    },
  });
  const headers = { Authorization: "Bearer other", "X-Team": "mail" };
  await scene.ada.patch(`/connections/${scene.id}`, { credential: "pasted-token", headers });
  expect((await scene.connect()).status).toBe(200);
  expect(sent.map((one) => one.get("authorization"))).toEqual([null]);
  expect(sent[0]?.get("x-team")).toBe("mail");
});

interface Scene extends AsyncDisposable {
  t: TestApp;
  ada: Caller;
  altered: AlteredServer;
  id: string;
  connect: () => ReturnType<Caller["post"]>;
  /** As a browser that agreed; `iss` is who answers, where it says so. */
  comeBack: (authorize_url: URL, iss?: string) => ReturnType<TestApp["request"]>;
}

async function beginning(routes: Routes, config?: Record<string, unknown>): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const altered = stack.use(startAlteredServer());
  altered.routes = routes;
  const t = stack.use(await testApp({ egress: { allow: ["127.0.0.1"] } }));
  const ada = await t.as("ada@example.com");
  const input = { kind: "mcp", base_url: altered.url, ...(config ? { config } : {}) };
  const { body } = await ada.post("/connections", input);
  const built = stack.move();
  return {
    t,
    ada,
    altered,
    id: body.id,
    connect: () => ada.post(`/integrations/mcp/${body.id}/connect`),
    comeBack: (url, iss) => {
      const said = {
        code: "x",
        state: url.searchParams.get("state") ?? "",
        ...(iss === undefined ? {} : { iss }),
      };
      return comeBack(t, ada, `/integrations/mcp/callback?${new URLSearchParams(said).toString()}`);
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

function rowOf(t: TestApp, id: string) {
  return t.app.db.selectFrom("connections").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
}
