import { afterAll, describe, expect, test } from "bun:test";
import { endSession } from "../../src/resources/accounts/sessions.ts";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";
import { comeBack, formOf, isQuestion, press, sessionOf } from "../support/consent.ts";
import { startGuardedMcp } from "../support/oauth-mcp-server.ts";
import { type OAuthProviders, startOAuthProviders } from "../support/oauth-providers.ts";

const FORM = "application/x-www-form-urlencoded";
const guarded = await startGuardedMcp();
afterAll(() => guarded[Symbol.asyncDispose]());

/** Eve has begun, and her victim has agreed at the provider. */
interface Lure {
  t: TestApp;
  eve: Caller;
  ada: Caller;
  /** The path of the callback, with what the provider sent along. */
  back: string;
  /** Where a confirmation goes. */
  confirm: string;
  /** How many codes have been exchanged. */
  exchanged: () => number;
}

const PLACES = ["notes", "codehost-a", "codehost-b", "sheets", "mcp"] as const;
type Place = (typeof PLACES)[number];

/** What reaches the callback or the confirmation, and the answer; nothing may come of it. */
const LURES: [string, (lure: Lure) => Promise<Answer>, number][] = [
  ["nobody is signed in in the browser", ({ t, back }) => t.request(back), 200],
  ["another account is signed in", async ({ t, back, ada }) => open(t, back, await sessionOf(t, ada)), 400],
  [
    "the cookie is made up",
    ({ t, back }) => open(t, back, `service_session=${"x".repeat(43)}.${"y".repeat(22)}`),
    200,
  ],
  [
    "the cookie is that of a session that has ended",
    async ({ t, back, eve }) => {
      const cookie = await sessionOf(t, eve);
      await endSession(t.app, cookie.split("=")[1] ?? "");
      return open(t, back, cookie);
    },
    200,
  ],
  ["the old mark of a browser is there", ({ t, back }) => open(t, back, "mw_oauth=anything"), 200],
  [
    "Eve's key goes along in place of a session",
    ({ t, back, eve }) => t.request(back, { headers: { "x-api-key": eve.key } }),
    200,
  ],
  [
    "Eve's key goes along beside the session of another account",
    async ({ t, back, ada, eve }) =>
      t.request(back, { headers: { "x-api-key": eve.key, cookie: await sessionOf(t, ada) } }),
    400,
  ],
  [
    "another browser of the same account is only asked",
    async ({ t, back, eve }) => open(t, back, await sessionOf(t, eve)),
    200,
  ],
  [
    "a script answers for the page with Eve's key",
    ({ t, confirm, back, eve }) => answer(t, confirm, fieldsOf(back), { "x-api-key": eve.key }),
    403,
  ],
  [
    "a script answers for the page with nothing",
    ({ t, confirm, back }) => answer(t, confirm, fieldsOf(back), {}),
    401,
  ],
  [
    "the page of another site answers",
    async (lure) => pressed(lure, { "sec-fetch-site": "cross-site", origin: "https://evil.example" }),
    403,
  ],
  [
    "the page of a sibling site answers",
    async (lure) => pressed(lure, { "sec-fetch-site": "same-site" }),
    403,
  ],
  ["a page that hides where it is from answers", async (lure) => pressed(lure, { origin: "null" }), 403],
  ["the answer lacks the proof", async (lure) => pressed(lure, {}, { proof: "" }), 400],
  ["the answer has a made-up proof", async (lure) => pressed(lure, {}, { proof: "x".repeat(43) }), 400],
  [
    "the answer has the proof of another state",
    async (lure) => pressed(lure, {}, { state: "y".repeat(43) }),
    400,
  ],
  [
    "the answer has the proof of another session of the account",
    async (lure) => {
      const page = await open(lure.t, lure.back, await sessionOf(lure.t, lure.eve));
      return press(lure.t, page, { cookie: await sessionOf(lure.t, lure.eve) });
    },
    400,
  ],
  [
    "the victim answers Eve's page",
    async (lure) => {
      const page = await open(lure.t, lure.back, await sessionOf(lure.t, lure.eve));
      return press(lure.t, page, { cookie: await sessionOf(lure.t, lure.ada) });
    },
    400,
  ],
  [
    "the answer goes to another place",
    async (lure) => {
      const cookie = await sessionOf(lure.t, lure.eve);
      const { fields } = formOf(await open(lure.t, lure.back, cookie));
      const elsewhere = lure.confirm.includes("/sheets/") ? "notes" : "sheets";
      return answer(lure.t, `/integrations/${elsewhere}/confirm`, fields, { cookie });
    },
    400,
  ],
  [
    "the answer comes as JSON",
    async (lure) => {
      const cookie = await sessionOf(lure.t, lure.eve);
      const { fields } = formOf(await open(lure.t, lure.back, cookie));
      return lure.t.request(lure.confirm, {
        method: "POST",
        headers: { cookie, "content-type": "application/json" },
        body: JSON.stringify(fields),
      });
    },
    422,
  ],
  [
    "the answer comes as a link",
    async (lure) => {
      const cookie = await sessionOf(lure.t, lure.eve);
      const { fields } = formOf(await open(lure.t, lure.back, cookie));
      return open(lure.t, `${lure.confirm}?${new URLSearchParams(fields).toString()}`, cookie);
    },
    405,
  ],
  [
    "the answer lacks its fields",
    async ({ t, eve, confirm }) => answer(t, confirm, {}, { cookie: await sessionOf(t, eve) }),
    422,
  ],
];

describe.each([...PLACES])("a consent that somebody was lured into ends nowhere: %s,", (place) => {
  test.each(LURES)("when %s", async (_name, act, status) => {
    await using providers = startOAuthProviders();
    const lure = await lureTo(place, providers);
    await using t = lure.t;
    const answered = await act(lure);
    expect(answered.status).toBe(status);
    expect(String(answered.body)).not.toContain("is connected");
    expect(lure.exchanged()).toBe(0);
    expect(await connected(lure)).toEqual([]);
    // The state is as good as before for whom it belongs to.
    expect((await comeBack(t, lure.eve, lure.back)).body).toContain("is connected");
    expect([lure.exchanged(), await connected(lure)]).toEqual([1, ["eve@example.com"]]);
  });
});

test.each<[string, RequestInit, number]>([
  ["JSON", { body: "{}", headers: { "content-type": "application/json" } }, 422],
  ["no type", { body: new Blob(["code=x&state=y&proof=z"]) }, 422],
  ["nothing", {}, 422],
  ["names of what every object has", { body: new URLSearchParams({ __proto__x: "x", toString: "x" }) }, 422],
  ["far too much", { body: new URLSearchParams({ code: "x".repeat(100_000) }) }, 413],
  [
    "a state that is too long",
    { body: new URLSearchParams({ code: "x", state: "x".repeat(300), proof: "z" }) },
    422,
  ],
])("a confirmation with %s is refused in words", async (_name, init, status) => {
  await using t = await testApp();
  const headers = new Headers(init.headers);
  headers.set("cookie", await sessionOf(t, await t.as("ada@example.com")));
  const answered = await t.request("/integrations/notes/confirm", { method: "POST", ...init, headers });
  expect([answered.status, typeof answered.body.detail]).toEqual([status, "string"]);
});

test("a question is good for the ten minutes of its state, and once", async () => {
  await using providers = startOAuthProviders();
  const { t, eve, back, exchanged } = await lureTo("notes", providers);
  await using _t = t;
  const cookie = await sessionOf(t, eve);
  const page = await open(t, back, cookie);
  const both = await Promise.all([press(t, page, { cookie }), press(t, page, { cookie })]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
  expect(exchanged()).toBe(1);
  const { body } = await eve.post("/integrations/notes/connect");
  const late = await open(t, await providers.agree(body.authorize_url), cookie);
  t.clock.advance("10m");
  expect((await press(t, late, { cookie })).body).toContain("too late");
  expect(exchanged()).toBe(1);
});

test("what a stolen key began shows its owner which key it was, and ends with the account it began for", async () => {
  await using providers = startOAuthProviders();
  const { t, eve: owner, back } = await lureTo("sheets", providers);
  await using _t = t;
  const page = await open(t, back, await sessionOf(t, owner));
  const [key] = (await owner.get("/auth/api-keys")).body;
  expect(page.body).toContain(`with the API key ${key.prefix}…${key.last4}, less than a minute ago`);
  expect(page.body).toContain("somebody else may have chosen");
});

test.each<[Place, string[]]>([
  ["notes", ["connection_created", "connection_begun"]],
  ["mcp", ["connection_changed", "connection_begun", "connection_created"]],
])("%s: the connection that a key's round trip ends in bears the name of the key", async (place, kinds) => {
  await using providers = startOAuthProviders();
  const { t, eve: owner, back } = await lureTo(place, providers);
  await using _t = t;
  expect((await comeBack(t, owner, back)).body).toContain("is connected");
  const [key] = (await owner.get("/auth/api-keys")).body;
  const { body: events } = await owner.get("/auth/security-events");
  expect(events.map(({ kind, api_key }: Record<string, string>) => [kind, api_key])).toEqual([
    ...kinds.map((kind) => [kind, `${key.prefix}…${key.last4}`]),
    ["api_key_created", null],
  ]);
});

test.each(["access_denied", "<script>alert(1)</script>", "server_error"])(
  "a refusal with %s tells nothing but itself, to whoever brings it",
  async (error) => {
    await using providers = startOAuthProviders();
    const { t, ada, back } = await lureTo("notes", providers);
    await using _t = t;
    const path = `${back}&error=${encodeURIComponent(error)}`;
    expect((await open(t, path, await sessionOf(t, ada))).body).toContain("another account began this");
    const page = await t.request(path);
    expect(page.body).not.toContain("<script");
    expect(isQuestion(page)).toBe(false);
    expect(providers.asked).toEqual([]);
  },
);

async function lureTo(place: Place, providers: OAuthProviders): Promise<Lure> {
  const t = await testApp(providers.config);
  const eve = await t.as("eve@example.com");
  const ada = await t.as("ada@example.com");
  const before = guarded.asked.length;
  const id =
    place === "mcp"
      ? (await eve.post("/connections", { kind: "mcp", base_url: guarded.url })).body.id
      : undefined;
  const { body } = await eve.post(`/integrations/${id === undefined ? place : `mcp/${id}`}/connect`);
  const back = await (id === undefined ? providers : guarded).agree(body.authorize_url);
  const asked = () => [...providers.asked, ...guarded.asked.slice(before)];
  const exchanged = () => asked().filter(({ path }) => /^\/?token$/.test(path)).length;
  return { t, eve, ada, back, confirm: `/integrations/${place}/confirm`, exchanged };
}

function open(t: TestApp, path: string, cookie: string): Promise<Answer> {
  return t.request(path, { headers: { cookie } });
}

function answer(
  t: TestApp,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string>,
): Promise<Answer> {
  const body = new URLSearchParams(fields).toString();
  return t.request(path, { method: "POST", headers: { "content-type": FORM, ...headers }, body });
}

/** The fields as a stranger can know them: of the address of the callback. */
function fieldsOf(back: string): Record<string, string> {
  return { ...Object.fromEntries(new URL(back, "http://mw.test").searchParams), proof: "x".repeat(43) };
}

/** The right session answers its own page, but for this. */
async function pressed(
  { t, eve, back, confirm }: Lure,
  headers: Record<string, string>,
  change: Record<string, string> = {},
): Promise<Answer> {
  const cookie = await sessionOf(t, eve);
  const { fields } = formOf(await open(t, back, cookie));
  return answer(t, confirm, { ...fields, ...change }, { cookie, ...headers });
}

/** Whose connections have a token. */
async function connected({ ada, eve }: Lure): Promise<string[]> {
  const owners: string[] = [];
  for (const { user, get } of [ada, eve])
    for (const { has_credential } of (await get("/connections")).body)
      if (has_credential) owners.push(user.email);
  return owners;
}
