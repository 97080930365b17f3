import { describe, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "../support/model-server.ts";
import { account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { closing, untilIdle } from "./load.ts";

const OWNER = "ann@client.example";

interface Seen {
  status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever the server said
  body: any;
}

async function ask(server: ServerProcess, api_key: string, path: string, body?: object): Promise<Seen> {
  const response = await fetch(`${server.http}${path}`, {
    method: body ? "POST" : "GET",
    headers: { "x-api-key": api_key, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, body: await response.json() };
}

async function stop(server: ServerProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

function ledgerOf(at: House): { kind: string; amount: number; balance: number }[] {
  using database = closing(at.database());
  return database.db.prepare("select kind, amount, balance from ledger order by id").all() as {
    kind: string;
    amount: number;
    balance: number;
  }[];
}

const PLANS = { default: "free", free: { credits: 1 }, pro: { credits: 3 }, team: { credits: 5 } };

describe("user set-plan", () => {
  test("next to a running server holds for its very next request, and without one for the next start", async () => {
    await using at = await house({ plans: PLANS });
    const { api_key } = await account(at, OWNER);
    {
      await using server = await at.start();
      await inbox(server, { email: OWNER, api_key });
      const call = () => ask(server, api_key, "/v1/messages", { instruction: "x" });
      expect((await call()).body.credits).toEqual({ charged: 1, remaining: 0 });
      expect((await call()).body).toMatchObject({ status: "limited", code: "credit_limit" });
      const moved = await at.cli("user", "set-plan", OWNER, "pro", "--json");
      expect([moved.code, JSON.parse(moved.out)]).toMatchObject([0, { email: OWNER, plan: "pro" }]);
      expect((await call()).body.credits).toEqual({ charged: 1, remaining: 1 });
      await stop(server);
    }
    const moved = await at.cli("user", "set-plan", OWNER, "team");
    expect([moved.code, moved.out.trim()]).toEqual([0, `${OWNER} is on plan team now.`]);
    await using server = await at.start();
    expect((await ask(server, api_key, "/auth/me")).body).toMatchObject({
      plan: "team",
      credits: { allowance: 5, used: 2, remaining: 3 },
    });
    expect((await ask(server, api_key, "/v1/messages", { instruction: "x" })).status).toBe(200);
    await stop(server);
  });

  test("refuses an account or a plan that is not there, with a sentence, and changes nothing", async () => {
    await using at = await house({ plans: PLANS });
    await rm(join(at.dir, "mailwright.db"));
    const nowhere = await at.cli("user", "set-plan", OWNER, "pro");
    expect([nowhere.code, nowhere.err]).toMatchObject([
      1,
      expect.stringContaining("There is no Mailwright in"),
    ]);
    await account(at, OWNER);
    const unknown = await at.cli("user", "set-plan", "bob@client.example", "pro");
    expect([unknown.code, unknown.err]).toMatchObject([
      1,
      expect.stringContaining("There is no account for bob@client.example."),
    ]);
    const gold = await at.cli("user", "set-plan", OWNER, "gold");
    expect(gold.code).not.toBe(0);
    expect(gold.err).toContain("free, pro, team");
    expect(JSON.parse((await at.cli("user", "list", "--json")).out)).toMatchObject([{ plan: "free" }]);
  });
});

describe("a start", () => {
  test("gives back what was set aside for a run that is gone, exactly once, and says so", async () => {
    await using at = await house({ plans: PLANS });
    const { api_key } = await account(at, OWNER);
    {
      await using server = await at.start();
      await inbox(server, { email: OWNER, api_key });
      await ask(server, api_key, "/v1/messages", { instruction: "x" });
      await stop(server);
    }
    {
      using database = closing(at.database());
      // As if its run had ended without a word on the ledger.
      database.db.exec("delete from ledger where kind = 'settle'");
      database.db.exec("update messages set state = 'failed', credits_charged = 0");
    }
    expect(ledgerOf(at).map(({ kind }) => kind)).toEqual(["grant", "reserve"]);
    for (const found of [true, false]) {
      await using server = await at.start();
      expect(server.log().includes("credits of runs that will never end were given back")).toBe(found);
      expect((await ask(server, api_key, "/auth/me")).body.credits).toMatchObject({ used: 0, remaining: 1 });
      await stop(server);
    }
    expect(ledgerOf(at)).toEqual([
      { kind: "grant", amount: 1, balance: 1 },
      { kind: "reserve", amount: -1, balance: 0 },
      { kind: "release", amount: 1, balance: 1 },
    ]);
  });

  test("after kill -9 leaves the reserve of a run that goes on alone, and its end is charged once", async () => {
    await using model = startModelServer({ fault: "hang" });
    await using at = await house({
      plans: PLANS,
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
    });
    const { api_key } = await account(at, OWNER);
    {
      await using server = await at.start();
      await inbox(server, { email: OWNER, api_key });
      const accepted = await ask(server, api_key, "/v1/messages", { instruction: "x", async: true });
      expect([accepted.status, accepted.body.credits]).toEqual([202, { charged: 0, remaining: 0 }]);
      await model.received(1);
      server.kill("SIGKILL");
      await server.exited;
    }
    model.fault = "none";
    await using server = await at.start();
    await untilIdle(at);
    expect((await ask(server, api_key, "/auth/me")).body.credits).toMatchObject({ used: 1, remaining: 0 });
    await stop(server);
    expect(ledgerOf(at).map(({ kind }) => kind)).toEqual(["grant", "reserve", "settle"]);
  });

  test("with other credits for a plan gives them for the month that runs, and takes back nothing that is used", async () => {
    await using at = await house({ plans: PLANS });
    const { api_key } = await account(at, OWNER);
    const dir = at.dir;
    {
      await using server = await at.start();
      await inbox(server, { email: OWNER, api_key });
      await ask(server, api_key, "/v1/messages", { instruction: "x" });
      await stop(server);
    }
    for (const [credits, allowance] of [
      [4, 4],
      [0, 1],
    ] as const) {
      await using again = await house({ plans: { ...PLANS, free: { credits } } }, dir);
      await using server = await again.start();
      expect((await ask(server, api_key, "/auth/me")).body.credits).toMatchObject({
        allowance,
        used: 1,
        remaining: allowance - 1,
      });
      await stop(server);
    }
  });
});
