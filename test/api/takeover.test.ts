import { describe, expect, test } from "bun:test";
import { type TestApp, testApp } from "../support/app.ts";
import { type Browser, freshCode, newestCode, openBrowser, signIn } from "./browser.ts";

const ADA = "ada@example.com";
const BOB = "bob@example.com";
const EVES = "of eve's choice 1";
const ADAS = "quiet river 42";
const NAT = "192.0.2.7";

/** What happens until the owner is signed in; the owner's browser. */
type Attack = (t: TestApp) => Promise<Browser>;

const registers = (browser: Browser, password = EVES, email = ADA, headers = {}) =>
  browser.post("/auth/register", { email, password }, headers);
const verifies = (browser: Browser, body: object, headers = {}) =>
  browser.post("/auth/verify", { email: ADA, ...body }, headers);

/** The owner enters the newest code, and has to be let in by it. */
async function ownerVerifies(t: TestApp, browser: Browser, body: object = {}, headers = {}) {
  const answer = await verifies(browser, { code: await freshCode(t, ADA), ...body }, headers);
  expect(answer.status).toBe(200);
  return browser;
}

function browserWith(t: TestApp, token: string, client = NAT): Browser {
  const browser = openBrowser(t, client);
  browser.cookies.set("mw_registration", token);
  return browser;
}

const NETWORK_HEADERS: Record<string, string>[] = [
  { "x-forwarded-for": "198.51.100.1" },
  { "x-forwarded-for": "198.51.100.1, 192.0.2.7" },
  { forwarded: "for=198.51.100.1" },
  { "x-real-ip": "198.51.100.1" },
  { "true-client-ip": "198.51.100.1", "cf-connecting-ip": "198.51.100.1" },
  { "x-forwarded-for": "127.0.0.1" },
  { "x-forwarded-for": "" },
];

/** Eve registers the owner's address, and the owner comes from where she came from. */
const SHARED_ADDRESS: [string, Attack][] = [
  [
    "an address shared with a new owner",
    async (t) => {
      await registers(openBrowser(t, NAT));
      return ownerVerifies(t, openBrowser(t, NAT));
    },
  ],
  [
    "an address shared with an owner who has an account without a password",
    async (t) => {
      await signIn(t, ADA, openBrowser(t, NAT));
      await registers(openBrowser(t, NAT));
      return ownerVerifies(t, openBrowser(t, NAT));
    },
  ],
  [
    "an address that is not known",
    async (t) => {
      await registers(openBrowser(t, ""));
      return ownerVerifies(t, openBrowser(t, ""));
    },
  ],
  [
    "an IPv6 network",
    async (t) => {
      await registers(openBrowser(t, "2001:db8::1"));
      return ownerVerifies(t, openBrowser(t, "2001:db8::2"));
    },
  ],
  [
    "an address and the name of the browser",
    async (t) => {
      const same = { "user-agent": "Mozilla/5.0 (the same)" };
      await registers(openBrowser(t, NAT), EVES, ADA, same);
      return ownerVerifies(t, openBrowser(t, NAT), {}, same);
    },
  ],
  ...NETWORK_HEADERS.map((headers): [string, Attack] => [
    `what a proxy would say of the owner: ${JSON.stringify(headers)}`,
    async (t) => {
      await registers(openBrowser(t, "203.0.113.9"), EVES, ADA, headers);
      return ownerVerifies(t, openBrowser(t, "198.51.100.1"), {}, headers);
    },
  ]),
];

/** Eve comes first or last, or has a token that is none here. */
const RACES: [string, Attack][] = [
  [
    "a registration before the owner's",
    async (t) => {
      await registers(openBrowser(t));
      const owner = openBrowser(t);
      await registers(owner, ADAS);
      await ownerVerifies(t, owner);
      expect((await login(t, ADAS)).status).toBe(200);
      return owner;
    },
  ],
  [
    "a registration after the owner's",
    async (t) => {
      const owner = openBrowser(t);
      await registers(owner, ADAS);
      await registers(openBrowser(t));
      return ownerVerifies(t, owner);
    },
  ],
  [
    "a registration after the owner's, who gives the password again: that it was not set is said",
    async (t) => {
      const owner = openBrowser(t);
      await registers(owner, ADAS);
      await registers(openBrowser(t));
      const code = await freshCode(t, ADA);
      const refused = await verifies(openBrowser(t), { code, password: ADAS });
      expect([refused.status, refused.body.code]).toEqual([401, "invalid_credentials"]);
      expect(refused.headers.getSetCookie()).toEqual([]);
      expect((await verifies(owner, { code })).status).toBe(200);
      return owner;
    },
  ],
  [
    "registrations at the same moment",
    async (t) => {
      const [owner, ...others] = Array.from({ length: 5 }, () => openBrowser(t)) as [Browser, ...Browser[]];
      await Promise.all([registers(owner, ADAS), ...others.map((eve) => registers(eve))]);
      return ownerVerifies(t, owner);
    },
  ],
  [
    "a registration within the pause, for which no mail goes out",
    async (t) => {
      const code = await freshCode(t, ADA);
      t.clock.advance("10s");
      await registers(openBrowser(t));
      const owner = openBrowser(t);
      expect((await verifies(owner, { code })).status).toBe(200);
      return owner;
    },
  ],
  [
    "an address in another writing",
    async (t) => {
      await registers(openBrowser(t), EVES, " ADA@Example.COM ");
      return ownerVerifies(t, openBrowser(t));
    },
  ],
  [
    "a token of another address in the owner's browser",
    async (t) => {
      await registers(openBrowser(t));
      const owner = openBrowser(t);
      await registers(owner, ADAS, BOB);
      return ownerVerifies(t, owner);
    },
  ],
  [
    "a token of another address in the owner's request",
    async (t) => {
      await registers(openBrowser(t));
      const { body } = await registers(openBrowser(t), ADAS, BOB);
      return ownerVerifies(t, openBrowser(t), { registration_token: body.registration_token });
    },
  ],
  [
    "tokens that are almost Eve's",
    async (t) => {
      const { body } = await registers(openBrowser(t));
      const token: string = body.registration_token;
      const code = await freshCode(t, ADA);
      expect((await verifies(openBrowser(t), { code, registration_token: token.slice(1) })).status).toBe(200);
      await registers(openBrowser(t));
      return ownerVerifies(t, browserWith(t, token.toLowerCase()), { registration_token: "" });
    },
  ],
  [
    "a token that is used again once the owner has signed in",
    async (t) => {
      const eve = openBrowser(t);
      const { body } = await registers(eve);
      const owner = await ownerVerifies(t, openBrowser(t));
      return ownerVerifies(t, owner, { registration_token: body.registration_token });
    },
  ],
  [
    "a token that is older than 15 minutes",
    async (t) => {
      const { body } = await registers(openBrowser(t));
      t.clock.advance("4m");
      return ownerVerifies(t, openBrowser(t), { registration_token: body.registration_token });
    },
  ],
  [
    "guesses at the code with the right token and password",
    async (t) => {
      const eve = openBrowser(t);
      await registers(eve);
      await t.drain();
      const right = await newestCode(t, ADA);
      for (const code of ["000000", "111111", "222222", "333333", "444444"].filter((one) => one !== right))
        expect((await verifies(eve, { code, password: EVES })).body.code).toBe("invalid_code");
      return ownerVerifies(t, openBrowser(t));
    },
  ],
  [
    "an account that has a password already",
    async (t) => {
      const owner = await signIn(t, ADA);
      await owner.post("/auth/set-password", { password: ADAS });
      const eve = openBrowser(t);
      await registers(eve);
      const code = await freshCode(t, ADA);
      expect((await verifies(eve, { code, password: EVES })).body.code).toBe("invalid_credentials");
      expect((await verifies(owner, { code, password: ADAS })).status).toBe(200);
      expect((await login(t, ADAS)).status).toBe(200);
      return owner;
    },
  ],
  ...["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"].map(
    (type): [string, Attack] => [
      `a page of Eve's that makes the owner's browser register as ${type}`,
      async (t) => {
        const owner = openBrowser(t);
        const body = JSON.stringify({ email: ADA, password: EVES });
        const sent = await owner.post("/auth/register", body, { "content-type": type });
        expect([sent.status, owner.cookies.size]).toEqual([422, 0]);
        return ownerVerifies(t, owner);
      },
    ],
  ),
];

describe("nobody else's password comes to work by", () => {
  test.each([...SHARED_ADDRESS, ...RACES])("%s", async (_name, attack) => {
    await using t = await testApp();
    const owner = await attack(t);
    for (const client of [NAT, "203.0.113.9"])
      expect((await login(t, EVES, client)).body.code).toBe("invalid_credentials");
    // The honest way still works.
    const { body: me } = await owner.get("/auth/me");
    if (!me.has_password)
      expect((await owner.post("/auth/set-password", { password: ADAS })).status).toBe(200);
    expect((await login(t, ADAS)).status).toBe(200);
  });
});

describe("a password that was chosen works once it is proven by", () => {
  const proofs: [string, (t: TestApp, registered: Browser, token: string) => [Browser, object]][] = [
    ["the cookie", (_t, registered) => [registered, {}]],
    [
      "the cookie, from another address",
      (t, _registered, token) => [browserWith(t, token, "203.0.113.4"), {}],
    ],
    ["the token", (t, _registered, token) => [openBrowser(t, ""), { registration_token: token }]],
    ["the password, given again", (t) => [openBrowser(t, "203.0.113.4"), { password: ADAS }]],
    ["the password, beside a cookie of another", (t) => [browserWith(t, "x".repeat(43)), { password: ADAS }]],
    ["all of them", (_t, registered, token) => [registered, { registration_token: token, password: ADAS }]],
  ];
  test.each(proofs)("%s", async (_name, prove) => {
    await using t = await testApp();
    const registered = openBrowser(t);
    const { body } = await registers(registered, ADAS);
    const [browser, proof] = prove(t, registered, body.registration_token);
    await ownerVerifies(t, browser, proof);
    expect((await browser.get("/auth/me")).body.has_password).toBe(true);
    expect((await login(t, ADAS)).status).toBe(200);
  });
});

describe("a password given to verify", () => {
  test("that was not chosen is refused in words; the code stays good, and the chosen one waits on", async () => {
    await using t = await testApp();
    await registers(openBrowser(t), ADAS);
    const code = await freshCode(t, ADA);
    const script = openBrowser(t);
    const refused = await verifies(script, { code, password: "another guess 5" });
    expect([refused.status, refused.body.code]).toEqual([401, "invalid_credentials"]);
    expect(refused.body.detail).toContain("Nobody was signed in");
    expect(refused.body.fix).toContain("without a password (`password`)");
    expect(JSON.stringify(refused.body)).not.toContain("another guess");
    expect(script.cookies.size).toBe(0);
    expect((await verifies(script, { code, password: ADAS })).body.has_password).toBe(true);
  });

  test("that waits for nobody any more is refused as well", async () => {
    await using t = await testApp();
    const code = await freshCode(t, ADA);
    const refused = await verifies(openBrowser(t), { code, password: ADAS });
    expect([refused.status, refused.body.code]).toEqual([401, "invalid_credentials"]);
    expect((await verifies(openBrowser(t), { code })).body.has_password).toBe(false);
  });

  test("counts as a try: after five wrong ones the right code is no good either", async () => {
    await using t = await testApp();
    await registers(openBrowser(t), ADAS);
    const code = await freshCode(t, ADA);
    for (let turn = 0; turn < 5; turn++)
      expect((await verifies(openBrowser(t), { code, password: `wrong guess ${turn}` })).status).toBe(401);
    const late = await verifies(openBrowser(t), { code, password: ADAS });
    expect([late.status, late.body.code]).toEqual([401, "invalid_code"]);
  });

  test.each<[string, unknown]>([
    ["a number", 7],
    ["null", null],
    ["empty", ""],
    ["a list", ["x"]],
    ["far too long", "x".repeat(2_000)],
  ])("that is %s is no password", async (_name, password) => {
    await using t = await testApp();
    const code = await freshCode(t, ADA);
    expect((await verifies(openBrowser(t), { code, password })).status).toBe(422);
  });
});

function login(t: TestApp, password: string, client = NAT) {
  return openBrowser(t, client).post("/auth/login", { email: ADA, password });
}
