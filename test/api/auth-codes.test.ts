import { expect, test } from "bun:test";
import { sweepUnproven } from "../../src/resources/accounts/unproven.ts";
import { type Answer, type TestApp, testApp } from "../support/app.ts";
import { freshCode, lettersTo, newestCode, openBrowser, signIn, subjectsTo } from "./browser.ts";

const ADA = "ada@example.com";

test("a code is mailed in words that say what it is, and signs in once", async () => {
  await using t = await testApp();
  const browser = openBrowser(t);
  const asked = await browser.post("/auth/request-code", { email: ` ${ADA.toUpperCase()} ` });
  expect([asked.status, asked.body]).toEqual([202, { retry_after: 60 }]);
  expect(await lettersTo(t, ADA)).toEqual([]);
  await t.drain();
  const code = await newestCode(t, ADA);
  expect(await subjectsTo(t, ADA)).toEqual(["Your Mailwright code"]);
  const [letter = ""] = await lettersTo(t, ADA);
  expect(letter).toContain("10 minutes");
  expect(letter).toContain("Auto-Submitted: auto-generated");
  expect(letter).not.toMatch(/https?:/);

  const me = await browser.post("/auth/verify", { email: ADA, code: ` ${code} ` });
  expect(me.status).toBe(200);
  expect(me.body).toMatchObject({ email: ADA, email_verified: true, name: null, has_password: false });
  expect(me.headers.get("cache-control")).toBe("no-store");
  expect((await browser.get("/auth/me")).body).toEqual(me.body);
  expect((await browser.post("/auth/verify", { email: ADA, code })).body.code).toBe("invalid_code");
});

test("a code is stored as an HMAC and stands nowhere but in the mail", async () => {
  await using t = await testApp();
  const code = await freshCode(t, ADA);
  const row = await t.app.db.selectFrom("login_codes").selectAll().executeTakeFirstOrThrow();
  expect(row.code_hmac).toMatch(/^[0-9a-f]{64}$/);
  expect(JSON.stringify(await t.app.db.selectFrom("jobs").selectAll().execute())).not.toContain(code);
});

test("the answer to a stranger is that to a member, in everything but time and request id", async () => {
  await using t = await testApp();
  await signIn(t, ADA);
  t.clock.advance("1h");
  const ask = (email: string) => openBrowser(t).post("/auth/request-code", { email });
  const member = await ask(ADA);
  const stranger = await ask("nobody@example.com");
  expect(shapeOf(stranger)).toEqual(shapeOf(member));
  // Neither has done any work yet: what is done for whom can be told by nobody who waits.
  expect((await t.app.db.selectFrom("jobs").select("kind").execute()).map(({ kind }) => kind)).toEqual([
    "mail_code",
    "mail_code",
  ]);
  expect(await accounts(t)).toEqual([ADA]);
  await t.drain();
  expect(await accounts(t)).toEqual([ADA, "nobody@example.com"]);
});

test("where registration is closed, a stranger gets the same answer and nothing else", async () => {
  await using t = await testApp({ auth: { registration: "closed" } });
  await t.as(ADA);
  const stranger = await openBrowser(t).post("/auth/request-code", { email: "bob@example.com" });
  const member = await openBrowser(t).post("/auth/request-code", { email: ADA });
  expect(shapeOf(stranger)).toEqual(shapeOf(member));
  const registered = await openBrowser(t).post("/auth/register", {
    email: "eve@example.com",
    password: "quiet river 42",
  });
  expect(registered.status).toBe(202);
  await t.drain();
  expect(await accounts(t)).toEqual([ADA]);
  expect(await subjectsTo(t, ADA)).toHaveLength(1);
  expect(await t.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
  const login = { email: "eve@example.com", password: "quiet river 42" };
  expect((await openBrowser(t).post("/auth/login", login)).body.code).toBe("invalid_credentials");
});

test("within the pause the remaining seconds are told and no second mail is sent", async () => {
  await using t = await testApp();
  const browser = openBrowser(t);
  await browser.post("/auth/request-code", { email: ADA });
  t.clock.advance("20s");
  const again = await browser.post("/auth/request-code", { email: ADA });
  expect([again.status, again.body]).toEqual([202, { retry_after: 40 }]);
  await t.drain();
  expect(await subjectsTo(t, ADA)).toHaveLength(1);
  t.clock.advance("40s");
  expect((await browser.post("/auth/request-code", { email: ADA })).body).toEqual({ retry_after: 60 });
  await t.drain();
  expect(await subjectsTo(t, ADA)).toHaveLength(2);
});

test("beyond five codes in an hour the answer is 202 with a longer wait", async () => {
  await using t = await testApp();
  const waits: number[] = [];
  for (let turn = 0; turn < 7; turn++) {
    const answer = await openBrowser(t, `192.0.2.${turn}`).post("/auth/request-code", { email: ADA });
    expect(answer.status).toBe(202);
    waits.push(answer.body.retry_after);
    await t.drain();
    t.clock.advance("60s");
  }
  expect(waits.slice(0, 4)).toEqual([60, 60, 60, 60]);
  // Told with the fifth already: the wait is until a mail can follow.
  expect(waits.slice(4)).toEqual([480, 420, 360]);
  expect(await subjectsTo(t, ADA)).toHaveLength(5);
});

test("only the limit of an IP address answers 429, for codes and registrations together", async () => {
  await using t = await testApp({ limits: { code_per_ip_hour: 3 } });
  const browser = openBrowser(t);
  for (let turn = 0; turn < 2; turn++)
    expect((await browser.post("/auth/request-code", { email: `u${turn}@example.com` })).status).toBe(202);
  const registration = { email: "u2@example.com", password: "quiet river 42" };
  expect((await browser.post("/auth/register", registration)).status).toBe(202);
  const refused = await browser.post("/auth/request-code", { email: "u3@example.com" });
  expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect((await openBrowser(t, "192.0.2.8").post("/auth/request-code", { email: ADA })).status).toBe(202);
});

test("the addresses of one IPv6 line are counted as one", async () => {
  await using t = await testApp({ limits: { code_per_ip_hour: 2 } });
  const statuses = [];
  for (const client of ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2:3:4:5:6", "2001:db8:1:3::1"])
    statuses.push((await openBrowser(t, client).post("/auth/request-code", { email: ADA })).status);
  expect(statuses).toEqual([202, 202, 429, 202]);
});

test("a new code takes the place of the old one", async () => {
  await using t = await testApp();
  const first = await freshCode(t, ADA);
  let second = await freshCode(t, ADA);
  while (second === first) second = await freshCode(t, ADA);
  const browser = openBrowser(t);
  expect((await browser.post("/auth/verify", { email: ADA, code: first })).status).toBe(401);
  expect((await browser.post("/auth/verify", { email: ADA, code: second })).status).toBe(200);
});

test("a code is good for ten minutes", async () => {
  await using t = await testApp();
  const code = await freshCode(t, ADA);
  t.clock.advance("599s");
  expect((await openBrowser(t).post("/auth/verify", { email: ADA, code })).status).toBe(200);
  const late = await freshCode(t, ADA);
  t.clock.advance("10m");
  expect((await openBrowser(t).post("/auth/verify", { email: ADA, code: late })).status).toBe(401);
});

test("after five wrong codes the right one is refused too, until there is a new one", async () => {
  await using t = await testApp();
  const code = await freshCode(t, ADA);
  const answers = new Set<string>();
  for (let turn = 0; turn < 5; turn++)
    answers.add(messageIn(await openBrowser(t).post("/auth/verify", { email: ADA, code: other(code) })));
  answers.add(messageIn(await openBrowser(t).post("/auth/verify", { email: ADA, code })));
  answers.add(messageIn(await openBrowser(t).post("/auth/verify", { email: "x@example.com", code })));
  t.clock.advance("1h");
  answers.add(messageIn(await openBrowser(t).post("/auth/verify", { email: ADA, code })));
  expect([...answers]).toHaveLength(1);
  const fresh = await freshCode(t, ADA);
  expect((await openBrowser(t).post("/auth/verify", { email: ADA, code: fresh })).status).toBe(200);
});

test("of many guesses at the same time no more are judged than one after the other, whatever they bring with them", async () => {
  await using t = await testApp();
  await signIn(t, ADA);
  t.clock.advance("2m");
  const code = await freshCode(t, ADA);
  const wrong = Array.from({ length: 24 }, (_, index) => String(100_000 + index)).filter(
    (one) => one !== code,
  );
  for (const more of [{ password: "not the password" }, {}]) {
    const guesses = [...wrong.slice(0, 12), code].map((guess) =>
      openBrowser(t).post("/auth/verify", { email: ADA, code: guess, ...more }),
    );
    const told = (await Promise.all(guesses)).map(({ status, body }) => `${status} ${body.code}`);
    expect(new Set(told)).toEqual(new Set(["401 invalid_code"]));
  }
});

test("the fourth wrong code leaves one attempt for the right one", async () => {
  await using t = await testApp();
  const code = await freshCode(t, ADA);
  for (let turn = 0; turn < 4; turn++)
    await openBrowser(t).post("/auth/verify", { email: ADA, code: other(code) });
  expect((await openBrowser(t).post("/auth/verify", { email: ADA, code })).status).toBe(200);
});

test("a code of another account is a wrong one", async () => {
  await using t = await testApp();
  const code = await freshCode(t, ADA);
  await freshCode(t, "bob@example.com");
  const answer = await openBrowser(t).post("/auth/verify", { email: "bob@example.com", code });
  if (code !== (await newestCode(t, "bob@example.com"))) expect(answer.status).toBe(401);
});

test("two verifications of one code at the same time sign in once", async () => {
  await using t = await testApp();
  const code = await freshCode(t, ADA);
  const verify = () => openBrowser(t).post("/auth/verify", { email: ADA, code });
  const statuses = (await Promise.all([verify(), verify(), verify()])).map(({ status }) => status);
  expect(statuses.sort()).toEqual([200, 401, 401]);
  expect(await t.app.db.selectFrom("sessions").selectAll().execute()).toHaveLength(1);
});

test("two requests for a code of a new address at the same time make one account and one code", async () => {
  await using t = await testApp();
  const ask = () => openBrowser(t).post("/auth/request-code", { email: ADA });
  const register = () => openBrowser(t).post("/auth/register", { email: ADA, password: "quiet river 42" });
  await Promise.all([ask(), ask(), register(), ask()]);
  await t.drain();
  expect(await accounts(t)).toEqual([ADA]);
  expect(await subjectsTo(t, ADA)).toHaveLength(1);
});

test("a second request before the first mail was made changes nothing", async () => {
  await using t = await testApp();
  await openBrowser(t).post("/auth/request-code", { email: ADA });
  t.clock.advance("60s");
  await openBrowser(t).post("/auth/request-code", { email: ADA });
  await t.drain();
  expect(await accounts(t)).toEqual([ADA]);
  expect(await subjectsTo(t, ADA)).toHaveLength(1);
  const code = await newestCode(t, ADA);
  expect((await openBrowser(t).post("/auth/verify", { email: ADA, code })).status).toBe(200);
});

test("30 codes can be tried from one address in an hour, whosever they are", async () => {
  await using t = await testApp();
  const browser = openBrowser(t);
  for (let turn = 0; turn < 30; turn++) {
    const answer = await browser.post("/auth/verify", { email: `u${turn}@example.com`, code: "000000" });
    expect(answer.status).toBe(401);
  }
  const refused = await browser.post("/auth/verify", { email: ADA, code: "000000" });
  expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
  const malformed = await browser.post("/auth/verify", { email: ADA, code: "12" });
  expect(malformed.status).toBe(422);
});

test("what is no code is a fault of the request", async () => {
  await using t = await testApp();
  for (const code of ["", "12345", "1234567", "12345a", "１２３４５６", "123 456", "-12345", "1e5000"]) {
    const answer = await openBrowser(t).post("/auth/verify", { email: ADA, code });
    expect([code, answer.status, answer.body.errors?.[0]?.path]).toEqual([code, 422, "body.code"]);
  }
  for (const body of [{}, { email: ADA }, { code: "123456" }, { email: ADA, code: 123_456 }, { email: null }])
    expect((await openBrowser(t).post("/auth/verify", body)).status).toBe(422);
  for (const body of ["", "{", "[]", '"x"'])
    expect((await openBrowser(t).post("/auth/verify", body)).status).toBe(422);
});

test("what is no mail address is a fault of the request, wherever it is sent", async () => {
  await using t = await testApp();
  const bad = [
    "",
    "ada",
    "@example.com",
    "ada@",
    "ada@@example.com",
    "ada@exa mple.com",
    "ada@example.com/x",
    "ada@example.com:25",
    "ada@127.0.0.1",
    "ada@0x7f.1",
    "ada@a..b",
    "ada@-a.com",
    "a,b@example.com",
    "ada@example.com\nBcc: eve@example.com",
    `${"a".repeat(250)}@example.com`,
  ];
  for (const email of bad) {
    const answer = await openBrowser(t, "").post("/auth/verify", { email, code: "123456" });
    expect([email, answer.status, answer.body.errors?.[0]?.path]).toEqual([email, 422, "body.email"]);
  }
  const body = { email: "ada", password: "quiet river 42", name: "Ada" };
  for (const path of ["/auth/request-code", "/auth/register", "/auth/login"])
    expect([path, (await openBrowser(t).post(path, body)).status]).toEqual([path, 422]);
  for (const path of ["/auth/request-code", "/auth/register", "/auth/login"])
    expect([path, (await openBrowser(t).post(path, { ...body, email: 7 })).status]).toEqual([path, 422]);
});

test("an address with an international domain is one account in both of its forms", async () => {
  await using t = await testApp();
  await signIn(t, "ada@xn--mnchen-3ya.example");
  const code = await freshCode(t, "ada@xn--mnchen-3ya.example");
  const me = await openBrowser(t).post("/auth/verify", { email: "Ada@MÜNCHEN.example", code });
  expect([me.status, me.body.email]).toEqual([200, "ada@xn--mnchen-3ya.example"]);
  expect(await accounts(t)).toHaveLength(1);
});

test("the first address that is verified administers the server, and so does auth.admin_email", async () => {
  await using t = await testApp({ auth: { admin_email: "Chief@xn--mnchen-3ya.example" } });
  const ada = await freshCode(t, ADA);
  const bob = await freshCode(t, "bob@example.com");
  const isAdmin = async (email: string) =>
    (await t.app.db.selectFrom("users").selectAll().where("email", "=", email).executeTakeFirstOrThrow())
      .is_admin === 1;
  await openBrowser(t).post("/auth/verify", { email: "bob@example.com", code: bob });
  await openBrowser(t).post("/auth/verify", { email: ADA, code: ada });
  expect([await isAdmin(ADA), await isAdmin("bob@example.com")]).toEqual([false, true]);
  const chief = "chief@xn--mnchen-3ya.example";
  const code = await freshCode(t, chief);
  expect(await isAdmin(chief)).toBe(false);
  await openBrowser(t).post("/auth/verify", { email: chief, code });
  expect(await isAdmin(chief)).toBe(true);
});

test("the code is in the log in capture mode, and in no other", async () => {
  for (const mode of ["capture", "relay"] as const) {
    await using t = await testApp({ outbound: { mode, relay_url: "smtp://127.0.0.1:1" } });
    const lines: unknown[] = [];
    const log = { ...t.app.log, info: (line: unknown) => void lines.push(line) };
    Object.assign(t.app, { log: Object.assign(Object.create(t.app.log), log) });
    await openBrowser(t).post("/auth/request-code", { email: ADA });
    await t.drain();
    const code = await newestCode(t, ADA);
    expect(code).toMatch(/^\d{6}$/);
    if (mode === "capture") expect(lines).toContainEqual({ email: ADA, code });
    else expect(JSON.stringify(lines)).not.toContain(code as string);
  }
});

test("a code that is asked for is sent after a restart, should the server stop at once", async () => {
  await using t = await testApp();
  await openBrowser(t).post("/auth/request-code", { email: ADA });
  await t.app.worker?.[Symbol.asyncDispose]();
  const [job] = await t.app.db.selectFrom("jobs").selectAll().execute();
  expect([job?.kind, job?.status]).toEqual(["mail_code", "pending"]);
});

test("an address that nobody proves within a day is forgotten, with its codes and chosen passwords", async () => {
  await using t = await testApp();
  await signIn(t, ADA);
  await openBrowser(t).post("/auth/register", { email: "bob@example.com", password: "quiet river 42" });
  await t.drain();
  await openBrowser(t).post("/auth/request-code", { email: ADA });
  await t.drain();
  t.clock.advance("23h");
  await openBrowser(t).post("/auth/register", { email: "eve@example.com", password: "quiet river 42" });
  await t.drain();
  expect(await accounts(t)).toEqual([ADA, "bob@example.com", "eve@example.com"]);
  t.clock.advance("2h");
  await freshCode(t, "dan@example.com");
  expect(await accounts(t)).toEqual([ADA, "eve@example.com", "dan@example.com"]);
  const rows = async (table: "login_codes" | "pending_passwords") =>
    (await t.app.db.selectFrom(table).select("user_id").execute()).length;
  expect([await rows("login_codes"), await rows("pending_passwords")]).toEqual([2, 1]);
  await signIn(t, "bob@example.com");
  expect(await accounts(t)).toContain("bob@example.com");
});

test("an account that waits for its mail is not forgotten meanwhile", async () => {
  await using t = await testApp();
  await openBrowser(t).post("/auth/request-code", { email: ADA });
  await t.drain();
  t.clock.advance("2d");
  const { id } = await t.app.db.selectFrom("users").select("id").executeTakeFirstOrThrow();
  await openBrowser(t).post("/auth/request-code", { email: ADA });
  await t.app.write((tx) => sweepUnproven(t.app, tx));
  expect(await t.app.db.selectFrom("users").select("id").execute()).toEqual([{ id }]);
  await t.drain();
  expect(await subjectsTo(t, ADA)).toHaveLength(2);
});

function shapeOf(answer: Answer): unknown {
  const { "x-request-id": _id, ...headers } = Object.fromEntries(answer.headers) as Record<string, string>;
  const cookies = answer.headers.getSetCookie().map((line) => line.replace(/=[\w-]{43};/, "=;"));
  return [answer.status, answer.body, { ...headers, "set-cookie": cookies }];
}

function messageIn(answer: Answer): string {
  return JSON.stringify([answer.status, { ...answer.body, request_id: "" }]);
}

function other(code: string): string {
  return code === "000000" ? "000001" : "000000";
}

async function accounts(t: TestApp): Promise<string[]> {
  return (await t.app.db.selectFrom("users").select("email").orderBy("id").execute()).map(
    ({ email }) => email,
  );
}
