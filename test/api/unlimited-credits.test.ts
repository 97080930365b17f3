import { describe, expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { reserveCredit, settleCredit } from "../../src/resources/billing/ledger.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { testApp } from "../support/app.ts";

/** As it is without a word about plans, which the tests else say. */
const PLAIN = { llm: { kind: "demo" }, plans: { team: { credits: undefined } } } as const;
const STRIPE = { stripe_secret_key: "sk_test_1", stripe_webhook_secret: "whsec_1" };
const BILLION = 1_000_000_000;

describe("the plan that accounts get where nobody can pay", () => {
  test("has no cap on credits unless the operator sets one, and has one where somebody can", () => {
    const teams = (config: Parameters<typeof defaultConfig>[0]) => defaultConfig(config).plans.team.credits;
    expect(teams({})).toBe("unlimited");
    expect(teams({ plans: { team: { credits: 7 } } })).toBe(7);
    expect(teams({ billing: STRIPE })).toBe(10_000);
    expect(teams({ billing: STRIPE, plans: { team: { credits: "unlimited" } } })).toBe("unlimited");
    const { free, pro } = defaultConfig({}).plans;
    expect([free.credits, pro.credits]).toEqual([100, 2_000]);
    expect(() => defaultConfig({ plans: { free: { credits: "none" as "unlimited" } } })).toThrow(
      'plans.free.credits must be a whole number from 0 to 1000000000 or "unlimited", not "none"',
    );
  });

  test("says so, counts what is used, and its numbers stay whole, small enough and in step", async () => {
    await using t = await testApp(PLAIN);
    const ada = await t.as("ada@example.com");
    await ada.post("/inboxes", {});
    const { body } = await ada.post("/v1/messages", { instruction: "x" });
    expect(body.credits).toEqual({ charged: 1, remaining: BILLION - 1 });
    const { credits } = (await ada.get("/auth/me")).body;
    expect(credits).toMatchObject({
      unlimited: true,
      allowance: BILLION,
      used: 1,
      topup: 0,
      remaining: BILLION - 1,
    });
    expect(credits.remaining).toBeLessThan(2 ** 31);
    expect((await ada.get("/usage")).body.totals).toMatchObject({ runs: 1, credits: 1 });
    const [user] = (await ada.get("/admin/users")).body.items;
    expect(user.credits).toMatchObject({ unlimited: true, used: 1 });
  });

  test("goes on when a billion are used, and keeps nothing back from strangers", async () => {
    await using t = await testApp(PLAIN);
    const { user, ...ada } = await t.as("ada@example.com");
    const spend = (whose: "household" | "strangers") =>
      t.app.write(async (tx) => {
        const message_id = t.app.newId();
        const took = await reserveCredit(t.app, tx, user, { message_id, whose });
        await settleCredit(t.app, tx, { id: message_id });
        return took;
      });
    expect(await spend("strangers")).toBe(true);
    // As after that many runs.
    const [last] = await t.app.db.selectFrom("ledger").selectAll().orderBy("id", "desc").execute();
    if (!last) throw new Error("Nothing was spent");
    const { id: _, ...row } = last;
    await t.app.write((tx) =>
      tx
        .insertInto("ledger")
        .values({ ...row, kind: "adjust", amount: -(last.balance - 1), balance: 1, reference: "used" })
        .execute(),
    );
    for (const whose of ["strangers", "strangers", "household"] as const)
      expect(await spend(whose)).toBe(true);
    const { credits } = (await ada.get("/auth/me")).body;
    expect(credits).toMatchObject({ unlimited: true, allowance: 2 * BILLION, used: BILLION + 2 });
    expect(credits.remaining).toBe(credits.allowance - credits.used);
  });

  test("is left and come back to with what is used", async () => {
    await using t = await testApp({ ...PLAIN, plans: { ...PLAIN.plans, free: { credits: 2 } } });
    const ada = await t.as("ada@example.com");
    await ada.post("/inboxes", {});
    const run = async () => (await ada.post("/v1/messages", { instruction: "x" })).status;
    expect([await run(), await run(), await run()]).toEqual([200, 200, 200]);
    await setPlan(t.app, { email: "ada@example.com", plan: "free" });
    expect(await run()).toBe(429);
    expect((await ada.get("/auth/me")).body.credits).toMatchObject({
      unlimited: false,
      remaining: 0,
      used: 3,
    });
    await setPlan(t.app, { email: "ada@example.com", plan: "team" });
    expect(await run()).toBe(200);
    expect((await ada.get("/auth/me")).body.credits).toMatchObject({ unlimited: true, used: 4 });
  });
});
