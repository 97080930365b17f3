import { describe, expect, test } from "bun:test";
import { type Answer, type TestApp, testApp } from "../support/app.ts";
import { fullHashing } from "../support/savings.ts";
import { freshCode, lettersTo, newestCode, openBrowser, signIn, subjectsTo } from "./browser.ts";

const ADA = "ada@example.com";
const PASSWORD = "quiet river 42";
const OTHER = "loud mountain 7";

describe("register", () => {
  test("a plain script that keeps nothing registers, verifies and logs in", async () => {
    await using t = await testApp();
    const script = () => openBrowser(t);
    const registered = await script().post("/auth/register", {
      email: ADA,
      password: PASSWORD,
      name: " Ada ",
    });
    expect([registered.status, registered.body]).toEqual([
      202,
      { status: "verification_required", retry_after: 60, registration_token: expect.any(String) },
    ]);
    expect(registered.headers.get("cache-control")).toBe("no-store");
    const early = await script().post("/auth/login", { email: ADA, password: PASSWORD });
    expect([early.status, early.body.code]).toEqual([403, "email_not_verified"]);
    await t.drain();
    expect((await lettersTo(t, ADA))[0]).toContain("chose a password");
    const code = await newestCode(t, ADA);
    const me = await script().post("/auth/verify", { email: ADA, code, password: PASSWORD });
    expect(me.body).toMatchObject({ email: ADA, name: "Ada", has_password: true });
    const login = await script().post("/auth/login", { email: ADA, password: PASSWORD });
    expect([login.status, login.body.email]).toEqual([200, ADA]);
  });

  test("the cookie, and the token in the body, prove the client from any address", async () => {
    await using t = await testApp();
    const mobile = openBrowser(t, "192.0.2.1");
    await mobile.post("/auth/register", { email: ADA, password: PASSWORD });
    expect(mobile.cookies.get("mw_registration")).toMatch(/^[\w-]{43}$/);
    const code = await freshCode(t, ADA);
    const elsewhere = openBrowser(t, "198.51.100.1");
    elsewhere.cookies.set("mw_registration", mobile.cookies.get("mw_registration") ?? "");
    expect((await elsewhere.post("/auth/verify", { email: ADA, code })).body.has_password).toBe(true);
    expect([...elsewhere.cookies.keys()]).toEqual(["service_session", "mw_known"]);

    const bob = "bob@example.com";
    const { body } = await openBrowser(t).post("/auth/register", { email: bob, password: PASSWORD });
    const { registration_token } = body;
    const answer = await openBrowser(t, "198.51.100.2").post("/auth/verify", {
      email: bob,
      code: await freshCode(t, bob),
      registration_token,
    });
    expect(answer.body.has_password).toBe(true);
  });

  const strangers: [string, (t: TestApp) => ReturnType<typeof openBrowser>][] = [
    ["from another address", (t) => openBrowser(t, "198.51.100.9")],
    ["from an unknown address", (t) => openBrowser(t, "")],
    ["from the same address", (t) => openBrowser(t)],
    [
      "with another token",
      (t) => {
        const browser = openBrowser(t);
        browser.cookies.set("mw_registration", "x".repeat(43));
        return browser;
      },
    ],
  ];
  test.each(strangers)("the owner who verifies %s drops the password for good", async (_name, owner) => {
    await using t = await testApp();
    const attacker = openBrowser(t);
    await attacker.post("/auth/register", { email: ADA, password: PASSWORD });
    const code = await freshCode(t, ADA);
    const me = await owner(t).post("/auth/verify", { email: ADA, code });
    expect([me.status, me.body.has_password]).toEqual([200, false]);
    const again = await attacker.post("/auth/verify", { email: ADA, code: await freshCode(t, ADA) });
    expect(again.body.has_password).toBe(false);
    const login = await attacker.post("/auth/login", { email: ADA, password: PASSWORD });
    expect([login.status, login.body.code]).toEqual([401, "invalid_credentials"]);
  });

  test("two clients without an address are not taken for one", async () => {
    await using t = await testApp();
    await openBrowser(t, "").post("/auth/register", { email: ADA, password: PASSWORD });
    const me = await openBrowser(t, "").post("/auth/verify", { email: ADA, code: await freshCode(t, ADA) });
    expect(me.body.has_password).toBe(false);
  });

  test("a wrong code leaves the password waiting", async () => {
    await using t = await testApp();
    const browser = openBrowser(t);
    await browser.post("/auth/register", { email: ADA, password: PASSWORD });
    await t.drain();
    const code = (await newestCode(t, ADA)) ?? "";
    const wrong = code === "000000" ? "000001" : "000000";
    await openBrowser(t, "198.51.100.9").post("/auth/verify", { email: ADA, code: wrong });
    expect((await browser.post("/auth/verify", { email: ADA, code })).body.has_password).toBe(true);
  });

  test("a password waits for 15 minutes", async () => {
    await using t = await testApp();
    const browser = openBrowser(t);
    await browser.post("/auth/register", { email: ADA, password: PASSWORD });
    t.clock.advance("4m");
    const code = await freshCode(t, ADA);
    const me = await browser.post("/auth/verify", { email: ADA, code });
    expect([me.status, me.body.has_password]).toEqual([200, false]);
  });

  test("who has an account already is told by mail when it gets a password, and only then", async () => {
    await using t = await testApp();
    const told = async () =>
      (await subjectsTo(t, ADA)).filter((subject) => subject.startsWith("The password of")).length;
    await signIn(t, ADA);
    const browser = openBrowser(t);
    t.clock.advance("1h");
    await browser.post("/auth/register", { email: ADA, password: PASSWORD });
    await t.drain();
    const code = (await newestCode(t, ADA)) as string;
    const wrong = code === "000000" ? "000001" : "000000";
    expect((await browser.post("/auth/verify", { email: ADA, code: wrong })).status).toBe(401);
    expect(await told()).toBe(0);
    expect((await browser.post("/auth/verify", { email: ADA, code })).body.has_password).toBe(true);
    expect(await told()).toBe(1);
    await signIn(t, ADA, browser);
    expect(await told()).toBe(1);
  });

  test("who is new needs no mail about the password that was just chosen", async () => {
    await using t = await testApp();
    const browser = openBrowser(t);
    await browser.post("/auth/register", { email: ADA, password: PASSWORD });
    await t.drain();
    const code = await newestCode(t, ADA);
    expect((await browser.post("/auth/verify", { email: ADA, code })).body.has_password).toBe(true);
    expect(await subjectsTo(t, ADA)).toEqual(["Your Mailwright code"]);
  });

  test("within the pause the code that is on its way is the one", async () => {
    await using t = await testApp();
    const code = await freshCode(t, ADA);
    t.clock.advance("10s");
    const browser = openBrowser(t);
    const registered = await browser.post("/auth/register", { email: ADA, password: PASSWORD });
    expect(registered.body.retry_after).toBe(50);
    await t.drain();
    expect(await subjectsTo(t, ADA)).toHaveLength(1);
    expect((await browser.post("/auth/verify", { email: ADA, code })).body.has_password).toBe(true);
  });

  test("an account with a password keeps it, is told by mail, and the answer is that to anybody", async () => {
    await using t = await testApp();
    await memberWith(t, PASSWORD);
    t.clock.advance("1h");
    const eve = openBrowser(t);
    const member = await eve.post("/auth/register", { email: ADA, password: OTHER });
    const stranger = await openBrowser(t).post("/auth/register", {
      email: "new@example.com",
      password: OTHER,
    });
    expect(shapeOf(member)).toEqual(shapeOf(stranger));
    // Nor does signing in with it tell them apart.
    const asMember = await eve.post("/auth/login", { email: ADA, password: OTHER });
    const asStranger = await openBrowser(t).post("/auth/login", {
      email: "new@example.com",
      password: OTHER,
    });
    expect([asMember.status, asMember.body.code]).toEqual([403, "email_not_verified"]);
    expect(shapeOf(asMember)).toEqual(shapeOf(asStranger));
    await t.drain();
    expect((await lettersTo(t, ADA)).at(-1)).toContain("with a password already");
    const code = await newestCode(t, ADA);
    expect((await eve.post("/auth/verify", { email: ADA, code })).body.has_password).toBe(true);
    expect((await eve.post("/auth/login", { email: ADA, password: OTHER })).status).toBe(401);
    expect((await eve.post("/auth/login", { email: ADA, password: PASSWORD })).status).toBe(200);
  });

  test("a password that starts to work signs out every other browser", async () => {
    await using t = await testApp();
    const old = await signIn(t, ADA);
    const browser = openBrowser(t);
    await browser.post("/auth/register", { email: ADA, password: PASSWORD });
    await signIn(t, ADA, browser);
    expect((await browser.get("/auth/me")).body.has_password).toBe(true);
    expect((await old.get("/auth/me")).status).toBe(401);
  });
});

describe("the password rule", () => {
  const bad: [string, string, string][] = [
    ["seven characters", "ab3 x!z", "too_short"],
    ["seven characters that take 14 units", "😀😃😄😁😆😅😂", "too_short"],
    ["129 characters", "aB".repeat(64) + "x", "too_long"],
    ["the mail address", "ADA@Example.com", "is_email"],
    ["a leaked one", "Password123", "breached"],
    ["a leaked one in full width", "ｐａｓｓｗｏｒｄ", "breached"],
    ["one character again and again", "zzzzzzzzzzzz", "breached"],
  ];
  test.each(bad)("refuses %s", async (_name, password, code) => {
    await using t = await testApp();
    const answer = await openBrowser(t).post("/auth/register", { email: ADA, password });
    expect([answer.status, answer.body.errors?.[0]]).toMatchObject([422, { path: "body.password", code }]);
    expect(JSON.stringify(answer.body)).not.toContain(password);
    const browser = await signIn(t, ADA);
    expect((await browser.post("/auth/set-password", { password })).body.errors[0].code).toBe(code);
  });

  const good: [string, string][] = [
    ["eight characters of any kind", "😀 ñ字 x!z"],
    ["128 characters", "aB3$".repeat(32)],
    ["only spaces and letters", "a b c d e f"],
  ];
  test.each(good)("takes %s", async (_name, password) => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    expect((await browser.post("/auth/set-password", { password })).status).toBe(200);
    expect((await openBrowser(t).post("/auth/login", { email: ADA, password })).status).toBe(200);
  });

  test("takes one for the same however its letters are composed", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    await browser.post("/auth/set-password", { password: "caf\u00e9 ﬁne day" });
    const login = await openBrowser(t).post("/auth/login", { email: ADA, password: "cafe\u0301 fine day" });
    expect(login.status).toBe(200);
  });

  test("stores argon2id and nothing else of it", async () => {
    using _ = fullHashing();
    await using t = await testApp();
    await memberWith(t, PASSWORD);
    const [user] = await t.app.db.selectFrom("users").selectAll().execute();
    expect(user?.password_hash).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  });
});

describe("login", () => {
  test("refuses a stranger, an account without a password and a wrong password alike", async () => {
    await using t = await testApp();
    await memberWith(t, PASSWORD);
    await signIn(t, "bob@example.com");
    const answers = [];
    for (const email of [ADA, "bob@example.com", "nobody@example.com"])
      answers.push(await openBrowser(t).post("/auth/login", { email, password: OTHER }));
    expect(answers[0]?.status).toBe(401);
    expect(answers[0]?.body.code).toBe("invalid_credentials");
    for (const answer of answers) expect(shapeOf(answer)).toEqual(shapeOf(answers[0] as Answer));
    expect(answers[0]?.headers.getSetCookie()).toEqual([]);
  });

  test("takes ten wrong passwords for an account and address, then none for a while", async () => {
    await using t = await testApp();
    await memberWith(t, PASSWORD);
    const eve = openBrowser(t, "198.51.100.6");
    for (let turn = 0; turn < 10; turn++)
      expect((await eve.post("/auth/login", { email: ADA, password: OTHER })).status).toBe(401);
    const refused = await eve.post("/auth/login", { email: ADA, password: PASSWORD });
    expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(1);
    expect((await eve.post("/auth/login", { email: "x@example.com", password: OTHER })).status).toBe(401);
    expect((await openBrowser(t).post("/auth/login", { email: ADA, password: PASSWORD })).status).toBe(200);
    t.clock.advance("15m");
    expect((await eve.post("/auth/login", { email: ADA, password: PASSWORD })).status).toBe(200);
  });

  test("forgets the wrong ones after the right one, and counts tries that come at once", async () => {
    await using t = await testApp({ limits: { login_failures: 3 } });
    await memberWith(t, PASSWORD);
    const browser = openBrowser(t);
    for (const password of [OTHER, OTHER, PASSWORD, OTHER, OTHER, PASSWORD]) {
      const { status } = await browser.post("/auth/login", { email: ADA, password });
      expect(status).toBe(password === PASSWORD ? 200 : 401);
    }
    const burst = await Promise.all(
      Array.from({ length: 6 }, () => browser.post("/auth/login", { email: ADA, password: OTHER })),
    );
    expect(burst.map(({ status }) => status).sort()).toEqual([401, 401, 401, 429, 429, 429]);
  });

  test("has a limit for an IP address, whosever passwords it tries", async () => {
    await using t = await testApp({ limits: { login_per_ip_hour: 2 } });
    const statuses = [];
    for (let turn = 0; turn < 3; turn++) {
      const body = { email: `u${turn}@example.com`, password: OTHER };
      statuses.push((await openBrowser(t).post("/auth/login", body)).status);
    }
    expect(statuses).toEqual([401, 401, 429]);
  });

  test("lets no unverified account in, with the right password either", async () => {
    await using t = await testApp();
    await memberWith(t, PASSWORD);
    await t.app.db.updateTable("users").set({ email_verified: 0 }).execute();
    const answer = await openBrowser(t).post("/auth/login", { email: ADA, password: PASSWORD });
    expect([answer.status, answer.body.code]).toEqual([403, "email_not_verified"]);
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  test("does not sign in with a password that is changed at the same moment", async () => {
    await using t = await testApp();
    const browser = await loggedIn(t);
    const [login, change] = await Promise.all([
      openBrowser(t).post("/auth/login", { email: ADA, password: PASSWORD }),
      browser.post("/auth/set-password", { password: OTHER, current_password: PASSWORD }),
    ]);
    expect(change.status).toBe(200);
    const sessions = await t.app.db.selectFrom("sessions").selectAll().execute();
    if (login.status === 200) expect(sessions).toHaveLength(1);
    else expect([login.status, login.body.code]).toEqual([401, "invalid_credentials"]);
  });
});

describe("set-password", () => {
  test("needs the current one where there is one, unless a code was entered in the last ten minutes", async () => {
    await using t = await testApp();
    const browser = await loggedIn(t);
    for (const body of [{ password: OTHER }, { password: OTHER, current_password: OTHER }]) {
      const refused = await browser.post("/auth/set-password", body);
      expect([refused.status, refused.body.code]).toEqual([403, "current_password_required"]);
    }
    const right = { password: OTHER, current_password: PASSWORD };
    expect((await browser.post("/auth/set-password", right)).body.has_password).toBe(true);
    await signIn(t, ADA, browser);
    t.clock.advance("10m");
    expect((await browser.post("/auth/set-password", { password: PASSWORD })).status).toBe(200);
  });

  test("needs a sign-in of the last ten minutes, whatever else is right", async () => {
    const bodies = [{ password: OTHER }, { password: OTHER, current_password: PASSWORD }, { password: "x" }];
    for (const begin of [(t: TestApp) => memberWith(t, PASSWORD), loggedIn]) {
      await using t = await testApp();
      const browser = await begin(t);
      t.clock.advance("10m");
      t.clock.advance("1s");
      for (const body of bodies) {
        const refused = await browser.post("/auth/set-password", body);
        expect([refused.status, refused.body.code]).toEqual([403, "session_required"]);
        expect(refused.body.fix).toContain("sign in again");
      }
      const again = await openBrowser(t).post("/auth/login", { email: ADA, password: PASSWORD });
      expect(again.status).toBe(200);
    }
  });

  test("a session that is too old cannot guess at the current password", async () => {
    await using t = await testApp({ limits: { login_failures: 1 } });
    const browser = await memberWith(t, PASSWORD);
    t.clock.advance("1h");
    const wrong = { password: OTHER, current_password: "wrong guess 1" };
    const answers = [await browser.post("/auth/set-password", wrong)];
    answers.push(await browser.post("/auth/set-password", { ...wrong, current_password: PASSWORD }));
    expect(answers[0]?.body.detail).toBe(answers[1]?.body.detail);
    const deletion = { confirm: ADA, password: PASSWORD };
    expect((await browser.send("DELETE", "/auth/account", deletion)).status).toBe(204);
  });

  test("is for a person: an API key is refused, with the current password as well", async () => {
    await using t = await testApp();
    const ada = await t.as(ADA);
    const browser = await signIn(t, ADA);
    const set = (body: object) => ada.post("/auth/set-password", body);
    for (const body of [{ password: PASSWORD }, { password: "x" }]) {
      const refused = await set(body);
      expect([refused.status, refused.body.code]).toEqual([403, "session_required"]);
    }
    expect((await browser.post("/auth/set-password", { password: PASSWORD })).status).toBe(200);
    const right = { password: OTHER, current_password: PASSWORD };
    expect((await set(right)).body.code).toBe("session_required");
    expect((await browser.get("/auth/me")).status).toBe(200);
  });

  test("a first one needs a sign-in of the last ten minutes, which using the session does not renew", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    for (let minute = 0; minute < 10; minute++) {
      t.clock.advance("1m");
      expect((await browser.get("/auth/me")).status).toBe(200);
    }
    t.clock.advance("1s");
    const refused = await browser.post("/auth/set-password", { password: PASSWORD });
    expect([refused.status, refused.body.code]).toEqual([403, "session_required"]);
    expect(refused.body.fix).toContain("sign in again");
    await signIn(t, ADA, browser);
    t.clock.advance("10m");
    expect((await browser.post("/auth/set-password", { password: PASSWORD })).status).toBe(200);
  });

  test("signs out every other browser and tells the owner by mail", async () => {
    await using t = await testApp();
    const [two, one] = [await signIn(t, ADA), await signIn(t, ADA)];
    expect((await one.post("/auth/set-password", { password: PASSWORD })).status).toBe(200);
    expect((await one.get("/auth/me")).status).toBe(200);
    expect((await two.get("/auth/me")).status).toBe(401);
    expect((await subjectsTo(t, ADA)).at(-1)).toBe("The password of your Mailwright account was set");
    expect((await lettersTo(t, ADA)).at(-1)).not.toContain(PASSWORD);
  });

  test("refuses to guess at the current password for ever", async () => {
    await using t = await testApp();
    const browser = await loggedIn(t);
    const guess = { password: OTHER, current_password: "wrong guess 1" };
    for (let turn = 0; turn < 10; turn++)
      expect((await browser.post("/auth/set-password", guess)).status).toBe(403);
    expect((await browser.post("/auth/set-password", guess)).status).toBe(429);
    const deletion = { confirm: ADA, password: "wrong guess 2" };
    expect((await browser.send("DELETE", "/auth/account", deletion)).status).toBe(429);
  });

  test("of two changes at the same moment one is made", async () => {
    await using t = await testApp();
    const browser = await loggedIn(t);
    const change = (password: string) =>
      browser.post("/auth/set-password", { password, current_password: PASSWORD });
    const answers = await Promise.all([change("first choice 1"), change("second choice 2")]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403]);
  });

  test("refuses bodies that are none of its own", async () => {
    await using t = await testApp();
    const browser = await signIn(t, ADA);
    for (const body of [{}, { password: null }, { password: 7 }, { password: PASSWORD, current_password: 7 }])
      expect((await browser.post("/auth/set-password", body)).status).toBe(422);
  });
});

/** By the password, and just now. */
async function loggedIn(t: TestApp) {
  const browser = await memberWith(t, PASSWORD);
  t.clock.advance("1h");
  expect((await browser.post("/auth/login", { email: ADA, password: PASSWORD })).status).toBe(200);
  return browser;
}

async function memberWith(t: TestApp, password: string) {
  const browser = await signIn(t, ADA);
  await browser.post("/auth/set-password", { password });
  return browser;
}

function shapeOf(answer: Answer): unknown {
  const { "x-request-id": _id, "set-cookie": cookie, ...headers } = Object.fromEntries(answer.headers);
  const body = { ...answer.body, request_id: "", registration_token: "" };
  return [answer.status, body, headers, cookie?.replace(/=[\w-]{43};/, "=;")];
}
