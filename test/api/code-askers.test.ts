import { describe, expect, test } from "bun:test";
import { type TestApp, testApp } from "../support/app.ts";
import {
  type Browser,
  freshCode,
  lettersTo,
  newestCode,
  openBrowser,
  signIn,
  subjectsTo,
} from "./browser.ts";

const ADA = "ada@example.com";
const EVES = "203.0.113.5";
const COOKIE = "mw_code";

const asks = (browser: Browser, email = ADA) => browser.post("/auth/request-code", { email });
const registers = (browser: Browser) =>
  browser.post("/auth/register", { email: ADA, password: "of eve's choice 1" });

/** Has a code asked for and its mail made. */
async function mailed(t: TestApp, browser: Browser, ask = asks): Promise<void> {
  const before = (await subjectsTo(t, ADA)).length;
  await ask(browser);
  await t.drain();
  expect(await subjectsTo(t, ADA)).toHaveLength(before + 1);
}

/** Tries codes that are wrong, with the cookies of a browser, from a new network each: only the code's own limit counts. */
async function guesses(t: TestApp, browser: Browser, times: number): Promise<void> {
  const right = await newestCode(t, ADA);
  const code = right === "000000" ? "000001" : "000000";
  for (let turn = 0; turn < times; turn++) {
    const answer = await browser.post("/auth/verify", { email: ADA, code }, from(turn));
    expect(answer.body.code).toBe("invalid_code");
  }
}

/** Whether the newest code signs a browser in. */
async function getsIn(t: TestApp, browser: Browser): Promise<boolean> {
  const code = await newestCode(t, ADA);
  return (await browser.post("/auth/verify", { email: ADA, code }, from(99))).status === 200;
}

const from = (turn: number) => ({ "x-forwarded-for": `198.51.100.${turn}` });

/** Browsers of as many networks that ask within the pause, one after the other. */
async function crowd(t: TestApp, size: number, block = "203.0.113"): Promise<Browser[]> {
  const browsers = Array.from({ length: size }, (_, turn) => openBrowser(t, `${block}.${turn + 10}`));
  for (const browser of browsers) await asks(browser);
  return browsers;
}

type Story = (t: TestApp, owner: Browser, eve: Browser) => Promise<void>;

const STORIES: [string, Story][] = [
  [
    "guesses without asking",
    async (t, owner) => {
      await mailed(t, owner);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "asks after the owner, and guesses with and without the cookie",
    async (t, owner, eve) => {
      await mailed(t, owner);
      await asks(eve);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "asks before the owner, so that no mail goes out for him",
    async (t, owner, eve) => {
      await mailed(t, eve);
      t.clock.advance("10s");
      expect((await asks(owner)).body).toEqual({ retry_after: 50 });
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "had guessed already when the owner asks",
    async (t, owner, eve) => {
      await mailed(t, eve);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
      await asks(owner);
    },
  ],
  [
    "has another code mailed, which the owner enters",
    async (t, owner, eve) => {
      await mailed(t, owner);
      t.clock.advance("60s");
      await mailed(t, eve);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "uses up the mails of the hour",
    async (t, owner, eve) => {
      for (let turn = 0; turn < 5; turn++) {
        eve.cookies.clear();
        await mailed(t, eve);
        t.clock.advance("60s");
      }
      expect((await asks(owner)).body.retry_after).toBeGreaterThan(60);
      await t.drain();
      expect(await subjectsTo(t, ADA)).toHaveLength(5);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "asks again and again, with new cookies",
    async (t, owner, eve) => {
      await mailed(t, eve);
      for (let turn = 0; turn < 9; turn++) {
        eve.cookies.clear();
        await asks(eve);
      }
      await asks(owner);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "registers the address",
    async (t, owner, eve) => {
      await mailed(t, eve, registers);
      await asks(owner);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "asks while the owner registers",
    async (t, owner, eve) => {
      await mailed(t, eve);
      await registers(owner);
      await guesses(t, eve, 6);
      await guesses(t, openBrowser(t, EVES), 6);
    },
  ],
  [
    "has asked from two networks besides the one that had the code mailed",
    async (t, owner, eve) => {
      await mailed(t, eve);
      const others = await crowd(t, 2);
      await asks(owner);
      for (const other of [eve, ...others, openBrowser(t, EVES)]) await guesses(t, other, 6);
    },
  ],
  [
    "asks from ten networks after the owner",
    async (t, owner) => {
      await mailed(t, owner);
      for (const other of [...(await crowd(t, 10)), openBrowser(t, EVES)]) await guesses(t, other, 6);
    },
  ],
];

describe("the owner of an address signs in with the newest code in the mailbox, though a stranger", () => {
  test.each(STORIES)("%s", async (_name, story) => {
    for (const member of [true, false]) {
      await using t = await testApp();
      if (member) await t.as(ADA);
      const owner = openBrowser(t);
      await story(t, owner, openBrowser(t, EVES));
      expect(await getsIn(t, openBrowser(t, EVES))).toBe(false);
      expect(await getsIn(t, owner)).toBe(true);
    }
  });

  test("does all of it hour after hour", async () => {
    await using t = await testApp();
    const eve = openBrowser(t, EVES);
    for (let round = 0; round < 6; round++) {
      t.clock.advance("12m");
      eve.cookies.clear();
      await mailed(t, eve);
      const owner = openBrowser(t);
      await asks(owner);
      await guesses(t, eve, 5);
      await guesses(t, openBrowser(t, EVES), 5);
      expect(await getsIn(t, owner)).toBe(true);
    }
  });
});

describe("a browser that has signed in before", () => {
  /** Four networks hold all the places, and use up every try at the code. */
  async function besieged(t: TestApp): Promise<Browser[]> {
    const eves = Array.from({ length: 4 }, (_, turn) => openBrowser(t, `203.0.113.${turn + 10}`));
    await mailed(t, eves[0] as Browser);
    for (const eve of eves.slice(1)) await asks(eve);
    for (const eve of [...eves, openBrowser(t, EVES)]) await guesses(t, eve, 5);
    return eves;
  }

  async function known(t: TestApp, client = "192.0.2.20"): Promise<Browser> {
    const owner = await signIn(t, ADA, openBrowser(t, client));
    owner.cookies.delete(COOKIE);
    expect((await owner.post("/auth/logout")).status).toBe(204);
    return owner;
  }

  test("gets in hour after hour with the newest code, though four networks hold all places and use up all tries", async () => {
    await using t = await testApp();
    const owner = await known(t);
    for (let round = 0; round < 6; round++) {
      t.clock.advance("16m");
      const eves = await besieged(t);
      expect(await getsIn(t, openBrowser(t, "192.0.2.30"))).toBe(false);
      await asks(owner);
      // They cannot take the place from it either.
      for (const eve of eves) {
        eve.cookies.clear();
        await asks(eve);
        await guesses(t, eve, 1);
      }
      expect(await getsIn(t, owner)).toBe(true);
      owner.cookies.delete(COOKIE);
    }
  });

  test("keeps its place when others have the next code mailed", async () => {
    await using t = await testApp();
    const owner = await known(t);
    t.clock.advance("16m");
    await besieged(t);
    await asks(owner);
    for (let turn = 0; turn < 3; turn++) {
      t.clock.advance("60s");
      await mailed(t, openBrowser(t, `198.51.100.${turn + 1}`));
      await guesses(t, openBrowser(t, EVES), 5);
    }
    expect(await getsIn(t, owner)).toBe(true);
  });

  test("has five tries of its own at a code, which bring others none, whatever it asks with", async () => {
    await using t = await testApp();
    const owner = await known(t);
    t.clock.advance("16m");
    const eves = await besieged(t);
    await asks(owner);
    await guesses(t, owner, 5);
    owner.cookies.delete(COOKIE);
    await asks(owner);
    expect(await getsIn(t, owner)).toBe(false);
    const late = await crowd(t, 3, "198.51.100");
    for (const browser of [...eves, ...late]) expect(await getsIn(t, browser)).toBe(false);
    t.clock.advance("16m");
    await asks(owner);
    await t.drain();
    expect(await getsIn(t, owner)).toBe(true);
  });

  test("is one only for its own address, and only with what it was given", async () => {
    await using t = await testApp();
    const eve = await signIn(t, "eve@example.net", openBrowser(t, EVES));
    const own = eve.cookies.get("mw_known") ?? "";
    expect(own).toMatch(/^[\w-]{43}$/);
    t.clock.advance("16m");
    await besieged(t);
    for (const value of [own, "", "x", `${own}x`, "A".repeat(43)]) {
      const browser = openBrowser(t, "192.0.2.40");
      browser.cookies.set("mw_known", value);
      await asks(browser);
      expect(await getsIn(t, browser)).toBe(false);
    }
  });

  test("has a cookie for /auth alone, the same for members who sign in with a password", async () => {
    await using t = await testApp();
    const browser = openBrowser(t);
    const post = { email: ADA, code: await freshCode(t, ADA) };
    const lines = (await browser.post("/auth/verify", post)).headers.getSetCookie();
    expect(lines).toContainEqual(
      expect.stringMatching(/^mw_known=[\w-]{43}; Path=\/auth; Max-Age=34560000; HttpOnly; SameSite=Lax$/),
    );
    expect((await browser.post("/auth/set-password", { password: "quiet river 42" })).status).toBe(200);
    const other = openBrowser(t);
    await other.post("/auth/login", { email: ADA, password: "quiet river 42" });
    expect(other.cookies.get("mw_known")).toBe(browser.cookies.get("mw_known"));
  });
});

describe("the tries at one code are", () => {
  test("five for those who did not ask, whatever they send as the cookie", async () => {
    await using t = await testApp();
    await freshCode(t, ADA);
    const bob = openBrowser(t);
    await asks(bob, "bob@example.com");
    await guesses(t, bob, 2);
    for (const value of ["", "x", "x".repeat(43)]) {
      const made = openBrowser(t);
      made.cookies.set(COOKIE, value);
      await guesses(t, made, 1);
    }
    expect(await getsIn(t, openBrowser(t))).toBe(false);
    expect(await getsIn(t, bob)).toBe(false);
  });

  test("five for a browser that asked, and asking again within the pause brings no more", async () => {
    await using t = await testApp();
    const browser = openBrowser(t);
    await mailed(t, browser);
    await guesses(t, browser, 4);
    const cookie = browser.cookies.get(COOKIE);
    await asks(browser);
    expect(browser.cookies.get(COOKIE)).toBe(cookie);
    await guesses(t, browser, 1);
    await asks(browser);
    expect(await getsIn(t, browser)).toBe(false);
    t.clock.advance("60s");
    await mailed(t, browser);
    await guesses(t, browser, 4);
    expect(await getsIn(t, browser)).toBe(true);
  });

  test("those of four browsers and five more, and never another one", async () => {
    await using t = await testApp();
    const first = openBrowser(t);
    await mailed(t, first);
    const others = await crowd(t, 6);
    for (const browser of [first, ...others.slice(0, 3)]) await guesses(t, browser, 5);
    await guesses(t, others[3] as Browser, 2);
    await guesses(t, others[4] as Browser, 2);
    await guesses(t, openBrowser(t), 1);
    const late = await crowd(t, 3, "192.0.2");
    for (const browser of [first, ...others, ...late, openBrowser(t)])
      expect(await getsIn(t, browser)).toBe(false);
  });

  test("no more when a place is handed on while the code is good", async () => {
    // The mails of the hour are used up, so that the code stays the newest when the places of the first four have lapsed.
    await using t = await testApp({ limits: { code_per_email_hour: 2 } });
    const first = openBrowser(t);
    await mailed(t, first);
    const others = await crowd(t, 3);
    t.clock.advance("14m");
    await mailed(t, first);
    for (const browser of [first, ...others, openBrowser(t)]) await guesses(t, browser, 5);
    t.clock.advance("2m");
    for (const browser of [...(await crowd(t, 8, "192.0.2")), first, openBrowser(t)])
      expect(await getsIn(t, browser)).toBe(false);
  });

  test("counted from the start for a new code, for everybody", async () => {
    await using t = await testApp();
    const first = openBrowser(t);
    await mailed(t, first);
    const [second = first] = await crowd(t, 1);
    for (const browser of [first, second, openBrowser(t)]) await guesses(t, browser, 5);
    t.clock.advance("60s");
    await mailed(t, openBrowser(t, "192.0.2.20"));
    for (const browser of [first, second, openBrowser(t)]) await guesses(t, browser, 4);
    expect(await getsIn(t, second)).toBe(true);
  });
});

describe("whoever has the code mailed", () => {
  test("has tries of his own, however many asked before", async () => {
    await using t = await testApp();
    await mailed(t, openBrowser(t));
    await crowd(t, 10);
    t.clock.advance("60s");
    const owner = openBrowser(t, "192.0.2.20");
    await mailed(t, owner);
    await guesses(t, openBrowser(t), 6);
    expect(await getsIn(t, owner)).toBe(true);
  });

  test("has tries for both addresses where he asks for another one besides", async () => {
    await using t = await testApp();
    const owner = openBrowser(t);
    await mailed(t, owner);
    await asks(owner, "bob@example.com");
    await guesses(t, openBrowser(t), 6);
    expect(await getsIn(t, owner)).toBe(true);
  });
});

describe("the cookie of a browser that asked", () => {
  test("is for /auth alone, HttpOnly and SameSite=Lax, lasts 15 minutes, and is Secure where people come by https", async () => {
    for (const base_url of ["http://mw.test", "https://mw.test"]) {
      await using t = await testApp();
      t.app.listensAt(base_url);
      const secure = base_url.startsWith("https") ? "; Secure" : "";
      const cookie = expect.stringMatching(
        new RegExp(`^mw_code=[\\w-]{43}; Path=/auth; Max-Age=900; HttpOnly; SameSite=Lax${secure}$`),
      );
      expect((await asks(openBrowser(t))).headers.getSetCookie()).toEqual([cookie]);
      expect((await registers(openBrowser(t))).headers.getSetCookie()).toContainEqual(cookie);
    }
  });

  test("is another one each time, and stands nowhere but there", async () => {
    await using t = await testApp();
    const values = [];
    for (const browser of [openBrowser(t), openBrowser(t), openBrowser(t, EVES)]) {
      await asks(browser);
      values.push(browser.cookies.get(COOKIE));
    }
    await t.drain();
    expect(new Set(values).size).toBe(3);
    const kept = JSON.stringify([
      await t.app.db.selectFrom("code_askers").selectAll().execute(),
      await t.app.db.selectFrom("login_codes").selectAll().execute(),
      await lettersTo(t, ADA),
    ]);
    for (const value of values) expect(kept).not.toContain(value as string);
    expect(kept).not.toContain(EVES);
  });

  test("that is none of ours is replaced", async () => {
    await using t = await testApp();
    for (const value of ["", "x", "x".repeat(44), `${"x".repeat(42)}é`]) {
      const browser = openBrowser(t);
      browser.cookies.set(COOKIE, value);
      await asks(browser);
      expect(browser.cookies.get(COOKIE)).toMatch(/^[\w-]{43}$/);
      expect(browser.cookies.get(COOKIE)).not.toBe(value);
    }
  });

  test("says nothing of whether there is an account, a mail, or room for one more", async () => {
    await using t = await testApp({ auth: { registration: "closed" } });
    await t.as(ADA);
    for (const email of [ADA, "nobody@example.com"]) {
      const answers = [];
      for (let turn = 0; turn < 8; turn++) {
        const { status, headers } = await asks(openBrowser(t, `192.0.2.${turn}`), email);
        const lines = headers.getSetCookie().map((line) => line.replace(/=[\w-]{43};/, "=;"));
        answers.push(JSON.stringify([status, lines]));
      }
      const cookie = "mw_code=; Path=/auth; Max-Age=900; HttpOnly; SameSite=Lax";
      expect(new Set(answers)).toEqual(new Set([JSON.stringify([202, [cookie]])]));
    }
    const rows = await t.app.db.selectFrom("code_askers").select("address").execute();
    expect(
      Map.groupBy(rows, ({ address }) => address)
        .values()
        .toArray()
        .map(({ length }) => length),
    ).toEqual([4, 4]);
  });

  test("is not given to a request that is refused", async () => {
    await using t = await testApp({ limits: { code_per_ip_hour: 1 } });
    expect((await asks(openBrowser(t), "ada")).headers.getSetCookie()).toEqual([]);
    expect([(await asks(openBrowser(t), ADA)).status, (await registers(openBrowser(t))).status]).toEqual([
      429, 429,
    ]);
    expect(await t.app.db.selectFrom("code_askers").selectAll().execute()).toEqual([]);
  });
});

test("who asked is forgotten within a day, and with the account", async () => {
  await using t = await testApp();
  const left = () => t.app.db.selectFrom("code_askers").select("place").execute();
  await asks(openBrowser(t), "bob@example.com");
  await t.drain();
  t.clock.advance("25h");
  const owner = openBrowser(t);
  await mailed(t, owner);
  expect(await left()).toHaveLength(1);
  expect(await getsIn(t, owner)).toBe(true);
  expect((await owner.send("DELETE", "/auth/account", { confirm: ADA })).status).toBe(204);
  expect(await left()).toEqual([]);
});
