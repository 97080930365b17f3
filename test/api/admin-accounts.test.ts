import { describe, expect, test } from "bun:test";
import { type Answer, type TestApp, testApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";

const BOB = "bob@example.net";

describe("an account that an administrator makes", () => {
  test("is there at once, and its owner is invited and signs in with a code, also where registration is closed", async () => {
    await using t = await testApp({ auth: { registration: "closed" } });
    const { post } = await administrator(t);
    const made = await post("/admin/users", { email: ` ${BOB.toUpperCase()} `, plan: "pro" });
    expect([made.status, made.body]).toMatchObject([
      201,
      { email: BOB, email_verified: true, has_password: false, is_admin: false, plan: "pro" },
    ]);
    const letter = await newestLetter(t);
    expect(letter.to).toBe(BOB);
    expect(letter.text).toContain("ada@example.com has made an account for you");
    expect(letter.text).toContain("http://mw.test/app/sign-in?email=bob%40example.net");
    expect((await t.request("/auth/request-code", json({ email: BOB }))).status).toBe(202);
    await t.drain();
    const code = /^\d{6}$/m.exec((await newestLetter(t)).text)?.[0];
    const me = await t.request("/auth/verify", json({ email: BOB, code }));
    expect([me.status, me.body.plan]).toEqual([200, "pro"]);
  });

  test("is refused where there is one, and where the address is none; nobody is mailed", async () => {
    await using t = await testApp();
    const { post } = await administrator(t);
    await t.as(BOB);
    const twice = await post("/admin/users", { email: BOB });
    expect([twice.status, twice.body.code]).toEqual([409, "conflict"]);
    for (const body of [{ email: "bob" }, { email: `${"b".repeat(400)}@example.net` }, { email: 7 }, {}])
      expect((await post("/admin/users", body)).status).toBe(422);
    expect((await post("/admin/users", { email: "x@example.net", plan: "gold" })).status).toBe(422);
    expect(await letters(t)).toEqual([]);
  });

  test("of somebody who has begun to register is theirs, and of two at once one is made", async () => {
    await using t = await testApp();
    const { ada, post } = await administrator(t);
    const chosen = { email: BOB, password: "quiet river 42" };
    expect((await t.request("/auth/register", json(chosen))).status).toBe(202);
    const both = await Promise.all([1, 2].map(() => post("/admin/users", { email: BOB })));
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409]);
    // What somebody chose before is still to be proven.
    expect((await t.request("/auth/login", json(chosen))).body.code).toBe("email_not_verified");
    expect((await ada.get("/admin/users")).body.items).toHaveLength(2);
  });
});

describe("a code that an administrator has sent", () => {
  test("is mailed under the limits of all codes, with a key as well", async () => {
    await using t = await testApp();
    const { ada } = await administrator(t);
    const bob = await t.as(BOB);
    const send = () => ada.post(`/admin/users/${bob.user.id}/send-code`);
    expect([(await send()).status, (await send()).body.retry_after]).toEqual([202, 60]);
    await t.drain();
    const sent = (await letters(t)).filter(({ subject }) => subject === "Your Mailwright code");
    expect(sent.map(({ to }) => to)).toEqual([BOB]);
    expect((await ada.post(`/admin/users/${Bun.randomUUIDv7()}/send-code`)).status).toBe(404);
  });
});

describe("a password that an administrator resets", () => {
  test("works no more, signs out every browser, and its owner is told and finds it among the events", async () => {
    await using t = await testApp();
    const { ada, post } = await administrator(t);
    const bob = await t.as(BOB);
    const session = await sessionOf(t, bob);
    const cookie = { cookie: session };
    const set = await t.request("/auth/set-password", {
      ...json({ password: "quiet river 42" }),
      headers: { ...cookie, "content-type": "application/json" },
    });
    expect(set.body.has_password).toBe(true);
    const reset = await post(`/admin/users/${bob.user.id}/reset-password`);
    expect([reset.status, reset.body]).toMatchObject([200, { email: BOB, has_password: false }]);
    expect((await t.request("/auth/me", { headers: cookie })).status).toBe(401);
    const login = await t.request("/auth/login", json({ email: BOB, password: "quiet river 42" }));
    expect(login.body.code).toBe("invalid_credentials");
    // A program goes on.
    expect((await bob.get("/auth/me")).body.has_password).toBe(false);
    const kinds = (await bob.get("/auth/security-events")).body.map(({ kind }: { kind: string }) => kind);
    expect(kinds[0]).toBe("password_reset");
    expect(await newestLetter(t)).toMatchObject({ to: BOB, subject: "Your Mailwright password was reset" });
    const own = (await ada.get("/auth/security-events")).body.map(({ kind }: { kind: string }) => kind);
    expect(own).toContain("administered");
  });

  test("is not that of who resets it, nor of nobody", async () => {
    await using t = await testApp();
    const { ada, post } = await administrator(t);
    expect((await post(`/admin/users/${ada.user.id}/reset-password`)).body.code).toBe("conflict");
    expect((await post(`/admin/users/${Bun.randomUUIDv7()}/reset-password`)).status).toBe(404);
    expect((await post("/admin/users/nobody/reset-password")).status).toBe(422);
  });
});

test("no key and no old session is enough for an account or a password", async () => {
  await using t = await testApp();
  const { ada, post } = await administrator(t);
  const bob = await t.as(BOB);
  const paths: [string, object][] = [
    ["/admin/users", { email: "new@example.net" }],
    [`/admin/users/${bob.user.id}/reset-password`, {}],
  ];
  for (const [path, body] of paths)
    expect([path, (await ada.post(path, body)).body.code]).toEqual([path, "session_required"]);
  t.clock.advance("11m");
  for (const [path, body] of paths)
    expect([path, (await post(path, body)).body.code]).toEqual([path, "session_required"]);
  expect((await ada.get("/admin/users")).body.items).toHaveLength(2);
  expect(await letters(t)).toEqual([]);
});

/** With a browser that has just signed in. */
async function administrator(t: TestApp) {
  const ada = await t.as("ada@example.com");
  const cookie = await sessionOf(t, ada);
  const post = (path: string, body: object = {}): Promise<Answer> =>
    t.request(path, { ...json(body), headers: { cookie, "content-type": "application/json" } });
  return { ada, post };
}

/** What the server has mailed, the newest first. */
async function letters({ app }: TestApp): Promise<{ to: string; subject: string; text: string }[]> {
  const rows = await app.db.selectFrom("outgoing_mails").selectAll().orderBy("id", "desc").execute();
  return rows.map(({ envelope_to: to, raw }) => {
    const text = Buffer.from(raw ?? "")
      .toString()
      .replaceAll(/=\r?\n/g, "")
      .replaceAll("=3D", "=");
    return { to, subject: /^Subject: (.*)$/m.exec(text)?.[1]?.trim() ?? "", text };
  });
}

async function newestLetter(t: TestApp) {
  const [newest] = await letters(t);
  if (!newest) throw new Error("Nobody was mailed");
  return newest;
}

function json(body: object): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
