import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { openSealed, type Sealed } from "../../src/resources/connections/sealed.ts";
import { freshToken } from "../../src/resources/integrations/tokens.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { comeBack } from "../support/consent.ts";
import { type OAuthProviders, type ProviderKind, startOAuthProviders } from "../support/oauth-providers.ts";
import { mayWrite } from "../support/refused-writes.ts";
import { until } from "../support/until.ts";

interface Scene extends AsyncDisposable {
  t: TestApp;
  ada: Caller;
  providers: OAuthProviders;
  id: string;
  /** What the token is now. */
  stored: () => Promise<{ credential: string; refresh_token: string | null }>;
  /** The same, without what is in memory only. */
  onDisk: Scene["stored"];
  refreshes: () => number;
  letters: () => Promise<string[]>;
}

test("a token that is good for more than a minute is given out as it is", async () => {
  await using scene = await connected("codehost-b");
  const { t, id, stored, refreshes } = scene;
  const { credential } = await stored();
  expect(await freshToken(t.app, id)).toBe(credential);
  t.clock.advance("3539s");
  expect(await freshToken(t.app, id)).toBe(credential);
  expect(refreshes()).toBe(0);
});

test.each<ProviderKind>(["notes", "codehost-b", "sheets"])(
  "a token of %s is renewed a minute before its end, and a new refresh token takes the place of the old one",
  async (kind) => {
    await using scene = await connected(kind);
    const { t, id, stored, refreshes } = scene;
    const before = await stored();
    t.clock.advance("3540s");
    const token = await freshToken(t.app, id);
    const after = await stored();
    expect(token).toBe(after.credential);
    expect(after.credential).not.toBe(before.credential);
    expect(after.refresh_token === before.refresh_token).toBe(kind === "sheets");
    t.clock.advance("3540s");
    expect(await freshToken(t.app, id)).not.toBe(token);
    expect(refreshes()).toBe(2);
  },
);

test("all who ask at once share one refresh", async () => {
  await using scene = await connected("codehost-b");
  const { t, id, refreshes } = scene;
  t.clock.advance("1h");
  const tokens = await Promise.all(Array.from({ length: 8 }, () => freshToken(t.app, id)));
  expect(new Set(tokens).size).toBe(1);
  expect(tokens[0]).toStartWith("codehost-b-access-");
  expect(refreshes()).toBe(1);
});

test("a token that the provider turned down is renewed, unless somebody did so already", async () => {
  await using scene = await connected("codehost-b");
  const { t, id, stored, refreshes } = scene;
  const { credential } = await stored();
  const renewed = await freshToken(t.app, id, credential);
  expect(renewed).not.toBe(credential);
  expect(await freshToken(t.app, id, credential)).toBe(renewed);
  expect(refreshes()).toBe(1);
});

test("a refused refresh asks the owner once to connect again, and connecting again mends it", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id, letters, refreshes } = scene;
  t.clock.advance("1h");
  providers.instead = () => Response.json({ error: "invalid_grant" }, { status: 400 });
  expect(await freshToken(t.app, id)).toBeNull();
  expect(await freshToken(t.app, id)).toBeNull();
  expect(refreshes()).toBe(1);
  const [connection] = (await ada.get("/connections")).body;
  expect(connection).toMatchObject({ status: "needs_auth", auth: "oauth", has_credential: true });
  expect(connection.last_error).toContain("invalid_grant");
  // A test that fails otherwise must not lead to a second mail.
  await t.app.db.updateTable("connections").set({ status: "error" }).execute();
  expect(await freshToken(t.app, id)).toBeNull();
  const mails = await letters();
  expect(mails).toHaveLength(1);
  expect(mails[0]).toContain("GitLab (ada)");
  expect(mails[0]).toContain("/app/connections and connect it again");
  providers.instead = null;
  await agreeTo(t, ada, providers, "codehost-b");
  expect((await ada.get("/connections")).body).toHaveLength(1);
  expect((await ada.get("/connections")).body[0]).toMatchObject({ status: "ok", last_error: null });
  expect(await freshToken(t.app, id)).toStartWith("codehost-b-access-");
  t.clock.advance("1h");
  providers.instead = () => Response.json({ error: "invalid_grant" }, { status: 400 });
  expect(await freshToken(t.app, id)).toBeNull();
  expect(await letters()).toHaveLength(2);
});

test.each<[string, () => Response]>([
  ["an unknown client", () => Response.json({ error: "invalid_client" }, { status: 401 })],
  ["401 and nothing else", () => new Response("no", { status: 401 })],
  ["an error with status 200", () => Response.json({ error: "bad_refresh_token" })],
])("%s counts as a refusal", async (_name, answer) => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id } = scene;
  t.clock.advance("1h");
  providers.instead = answer;
  expect(await freshToken(t.app, id)).toBeNull();
  expect((await ada.get("/connections")).body[0].status).toBe("needs_auth");
});

test.each<[string, () => Response]>([
  ["a fault of the provider", () => new Response("oops", { status: 500 })],
  ["too many requests", () => Response.json({ error: "slow_down" }, { status: 429 })],
  ["a page of a proxy", () => new Response("<html>", { status: 403 })],
  ["something that is no token", () => Response.json({ hello: "world" })],
])(
  "%s is no refusal: the old token serves to its end, and the next refresh may work",
  async (_name, answer) => {
    await using scene = await connected("codehost-b");
    const { t, ada, providers, id, stored, letters } = scene;
    const { credential } = await stored();
    providers.instead = answer;
    t.clock.advance("3550s");
    expect(await freshToken(t.app, id)).toBe(credential);
    expect(await freshToken(t.app, id, credential)).toBeNull();
    t.clock.advance("50s");
    expect(await freshToken(t.app, id)).toBeNull();
    expect((await ada.get("/connections")).body[0].status).toBe("ok");
    expect(await letters()).toEqual([]);
    providers.instead = null;
    expect(await freshToken(t.app, id)).toStartWith("codehost-b-access-");
  },
);

test("a token without an end is good until the provider turns it down; then its owner is told", async () => {
  await using scene = await connected("codehost-a", null);
  const { t, ada, id, stored, letters, refreshes } = scene;
  const { credential } = await stored();
  t.clock.advance("900d");
  expect(await freshToken(t.app, id)).toBe(credential);
  expect(await freshToken(t.app, id, "another")).toBe(credential);
  expect(await freshToken(t.app, id, credential)).toBeNull();
  expect(await freshToken(t.app, id)).toBeNull();
  expect((await ada.get("/connections")).body[0].status).toBe("needs_auth");
  expect(await letters()).toHaveLength(1);
  expect(refreshes()).toBe(0);
});

test("a connection that was connected anew while a refresh was under way keeps what is newer", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id, stored } = scene;
  t.clock.advance("1h");
  const [late, resolve] = held();
  providers.instead = () => late;
  const waiting = freshToken(t.app, id);
  await until(() => providers.asked.at(-1)?.body["grant_type"] === "refresh_token");
  providers.instead = null;
  await agreeTo(t, ada, providers, "codehost-b");
  const newer = await stored();
  resolve(Response.json({ access_token: "stale", token_type: "bearer", refresh_token: "stale" }));
  expect(await waiting).toBe(newer.credential);
  expect(await stored()).toEqual(newer);
});

test("a refusal that comes after a new round trip says nothing about it", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id, letters } = scene;
  t.clock.advance("1h");
  const [late, resolve] = held();
  providers.instead = () => late;
  const waiting = freshToken(t.app, id);
  await until(() => providers.asked.at(-1)?.body["grant_type"] === "refresh_token");
  providers.instead = null;
  await agreeTo(t, ada, providers, "codehost-b");
  resolve(Response.json({ error: "invalid_grant" }, { status: 400 }));
  expect(await waiting).toBeNull();
  expect((await ada.get("/connections")).body[0].status).toBe("ok");
  expect(await letters()).toEqual([]);
});

test("a connection that is deleted while a refresh is under way stays deleted", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id } = scene;
  t.clock.advance("1h");
  const [late, resolve] = held();
  providers.instead = () => late;
  const waiting = freshToken(t.app, id);
  await until(() => providers.asked.at(-1)?.body["grant_type"] === "refresh_token");
  await ada.delete(`/connections/${id}`);
  resolve(Response.json({ access_token: "late", token_type: "bearer" }));
  expect(await waiting).toBeNull();
  expect((await ada.get("/connections")).body).toEqual([]);
});

test("a pasted token is given out until it is turned down, and nobody is told", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "notes", credential: "ntn_pasted" });
  expect(await freshToken(t.app, body.id)).toBe("ntn_pasted");
  expect(await freshToken(t.app, body.id, "ntn_pasted")).toBeNull();
  expect((await ada.get("/connections")).body[0].status).toBe("untested");
  expect(await freshToken(t.app, Bun.randomUUIDv7())).toBeNull();
});

test("a provider that the operator took out of the configuration is no reason to connect again", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, id, stored } = scene;
  const { credential } = await stored();
  t.app.config.integrations["codehost-b"].client_secret = "";
  t.clock.advance("3550s");
  expect(await freshToken(t.app, id)).toBe(credential);
  expect((await ada.get("/connections")).body[0].status).toBe("ok");
});

test("a test of a connection renews its token first", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, id, refreshes } = scene;
  t.clock.advance("1h");
  const tested = await ada.post(`/connections/${id}/test`);
  expect(tested.body).toMatchObject({ ok: true, status: "ok", account: "ada" });
  expect(refreshes()).toBe(1);
  expect((await ada.get("/connections")).body[0].last_tested_at).toBe(t.app.now());
});

test("a new refresh token that the disk does not take is used from memory, and written as soon as it can be", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, id, refreshes, onDisk } = scene;
  const before = await onDisk();
  t.clock.advance("1h");
  await mayWrite(t, false);
  const token = await freshToken(t.app, id);
  expect(token).toStartWith("codehost-b-access-");
  expect(await onDisk()).toEqual(before);
  expect(await freshToken(t.app, id)).toBe(token);
  expect(refreshes()).toBe(1);
  // The one in memory is spent for the next.
  t.clock.advance("1h");
  const next = await freshToken(t.app, id);
  expect(next).not.toBe(token);
  expect([await onDisk(), refreshes()]).toEqual([before, 2]);
  await mayWrite(t, true);
  expect((await ada.post(`/connections/${id}/test`)).body).toMatchObject({ ok: true, account: "ada" });
  await until(async () => (await onDisk()).credential === next);
  expect((await ada.get("/connections")).body[0].expires_at).toBe(t.app.now() + 3_600);
  t.clock.advance("1h");
  expect(await freshToken(t.app, id)).not.toBe(next);
  expect([refreshes(), (await ada.get("/connections")).body[0].status]).toEqual([3, "ok"]);
});

test("a new refresh token that is only in memory is written as the server stops", async () => {
  await using dir = await folder();
  const url = `sqlite:${dir.path}/mailwright.db`;
  let token: string | null = null;
  {
    await using scene = await connected("codehost-b", 3_600, { database: { url } });
    const { t, id } = scene;
    t.clock.advance("1h");
    await mayWrite(t, false);
    token = await freshToken(t.app, id);
    await mayWrite(t, true);
  }
  await using again = await testApp({ database: { url } });
  const row = await again.app.db.selectFrom("connections").selectAll().executeTakeFirstOrThrow();
  expect([token, row.status]).toEqual([openSealed(again.app, row).credential, "ok"]);
});

test("a server stops although the disk never takes what it has in memory", async () => {
  const scene = await connected("codehost-b");
  scene.t.clock.advance("1h");
  await mayWrite(scene.t, false);
  expect(await freshToken(scene.t.app, scene.id)).not.toBeNull();
  await scene[Symbol.asyncDispose]();
});

test("a token that waits for the disk gives way to what its owner connected meanwhile", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id, onDisk } = scene;
  t.clock.advance("1h");
  await mayWrite(t, false);
  const waiting = await freshToken(t.app, id);
  await mayWrite(t, true);
  await agreeTo(t, ada, providers, "codehost-b");
  const newer = await onDisk();
  expect(newer.credential).not.toBe(waiting ?? "");
  expect(await freshToken(t.app, id)).toBe(newer.credential);
  await until(async () => t.app.unwritten.size === 0);
  expect(await onDisk()).toEqual(newer);
});

test("other secrets that are entered while a token waits for the disk keep that token", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, id, onDisk } = scene;
  t.clock.advance("1h");
  await mayWrite(t, false);
  const token = await freshToken(t.app, id);
  await mayWrite(t, true);
  expect((await ada.patch(`/connections/${id}`, { headers: { "x-team": "one" } })).status).toBe(200);
  expect((await onDisk()).credential).toBe(token ?? "");
  await until(async () => t.app.unwritten.size === 0);
  expect((await onDisk()).credential).toBe(token ?? "");
});

test("a deleted connection is deleted with the token that waits for the disk, which is given back", async () => {
  await using scene = await connected("codehost-b");
  const { t, ada, providers, id } = scene;
  t.clock.advance("1h");
  await mayWrite(t, false);
  const token = await freshToken(t.app, id);
  const { refresh_token } = await scene.stored();
  await mayWrite(t, true);
  expect((await ada.delete(`/connections/${id}`)).status).toBe(204);
  const given = providers.asked.findLast(({ path }) => path === "revoke")?.body["token"];
  expect([given, token === null]).toEqual([refresh_token ?? "", false]);
  await until(async () => t.app.unwritten.size === 0);
  expect(await freshToken(t.app, id)).toBeNull();
});

test.each<ProviderKind>(["notes", "codehost-b"])(
  "what the consent to %s brought is kept in memory while the disk does not take it, and the person is told",
  async (kind) => {
    await using providers = startOAuthProviders();
    await using t = await testApp(providers.config);
    const ada = await t.as("ada@example.com");
    const { body } = await ada.post(`/integrations/${kind}/connect`);
    const back = await providers.agree(body.authorize_url);
    providers.before = () => mayWrite(t, false);
    const page = await comeBack(t, ada, back);
    expect(page.status).toBe(200);
    expect(page.body).toContain("do not connect again");
    expect((await ada.get("/connections")).body).toEqual([]);
    await mayWrite(t, true);
    await until(async () => (await ada.get("/connections")).body.length === 1);
    const [{ id, status }] = (await ada.get("/connections")).body;
    expect(status).toBe("ok");
    expect(await freshToken(t.app, id)).toStartWith(`${kind}-access-`);
  },
);

async function connected(
  kind: ProviderKind,
  expires_in: number | null = 3_600,
  config: ConfigOverrides = {},
): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const providers = stack.use(startOAuthProviders());
  providers.expires_in = expires_in;
  const t = stack.use(await testApp({ ...providers.config, ...config }));
  const ada = await t.as("ada@example.com");
  await agreeTo(t, ada, providers, kind);
  const [{ id }] = (await ada.get("/connections")).body;
  const built = stack.move();
  return {
    t,
    ada,
    providers,
    id,
    stored: async () => {
      const row = await t.app.db.selectFrom("connections").selectAll().executeTakeFirstOrThrow();
      const { credential, oauth } = openSealed(t.app, row);
      return { credential, refresh_token: oauth?.refresh_token ?? null };
    },
    onDisk: async () => {
      const { sealed, id: own } = await t.app.db
        .selectFrom("connections")
        .select(["sealed", "id"])
        .executeTakeFirstOrThrow();
      const { credential, oauth } = JSON.parse(t.app.secrets.open(sealed ?? new Uint8Array(), own)) as Sealed;
      return { credential, refresh_token: oauth?.refresh_token ?? null };
    },
    refreshes: () => providers.asked.filter(({ body }) => body["grant_type"] === "refresh_token").length,
    letters: async () => {
      const mails = await t.app.db.selectFrom("outgoing_mails").select("raw").execute();
      return mails.map(({ raw }) =>
        Buffer.from(raw ?? [])
          .toString()
          .replaceAll("=\r\n", ""),
      );
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

async function agreeTo(t: TestApp, caller: Caller, providers: OAuthProviders, kind: ProviderKind) {
  const { body } = await caller.post(`/integrations/${kind}/connect`);
  expect((await comeBack(t, caller, await providers.agree(body.authorize_url))).status).toBe(200);
}

function held(): [Promise<Response>, (response: Response) => void] {
  const { promise, resolve } = Promise.withResolvers<Response>();
  return [promise, resolve];
}

async function folder() {
  const path = await mkdtemp(join(tmpdir(), "mailwright-tokens-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
