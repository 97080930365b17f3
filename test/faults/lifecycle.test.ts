import { describe, expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { closing, faultsOf, untilIdle } from "./load.ts";
import { until } from "../support/until.ts";

const OWNER = "ann@client.example";

async function withInbox(at: House, server: ServerProcess): Promise<{ to: string; api_key: string }> {
  const owner = await account(at, OWNER);
  return { to: await inbox(server, owner), api_key: owner.api_key };
}

async function send(server: ServerProcess, to: string, id: string): Promise<void> {
  const raw = rawMail({ from: OWNER, to, text: `Sum up ${id}.`, headers: { "Message-ID": `<${id}>` } });
  expect(await deliver(server.smtp, { from: OWNER, to, raw })).toStartWith("250");
}

describe("one process for a data folder", () => {
  test("a second server on it is refused with a sentence, and command lines work next to the first", async () => {
    await using at = await house();
    await using server = await at.start();
    const second = await at.cli("serve");
    expect(second.code).toBe(1);
    expect(second.err.trim()).toBe(
      `Another Mailwright is running on the data folder ${at.dir}. ` +
        "Stop it first, or give this one a folder of its own with data.dir.",
    );
    const { to } = await withInbox(at, server);
    expect(to).toEndWith("@mw.test");
    const listed = await at.cli("user", "list", "--json");
    expect(JSON.parse(listed.out)).toMatchObject([{ email: OWNER }]);
  });

  test("the folder is free again after kill -9", async () => {
    await using at = await house();
    const killed = await at.start();
    killed.kill("SIGKILL");
    await killed.exited;
    await using next = await at.start();
    expect((await fetch(`${next.http}/readyz`)).status).toBe(200);
  });
});

describe("stopping", () => {
  test("SIGTERM lets the work in progress end and exits 0; what has not begun is done at the next start", async () => {
    await using model = startModelServer({ fault: "slow", slow_ms: 300 });
    await using at = await house({
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
      routing: { concurrency: 2 },
    });
    const sent = new Set(["1@x.example", "2@x.example", "3@x.example"]);
    {
      await using server = await at.start();
      const { to } = await withInbox(at, server);
      for (const id of sent) await send(server, to, id);
      await model.received(2);
      server.kill("SIGTERM");
      expect(await server.exited).toBe(0);
      expect(server.log().trimEnd().split("\n").at(-1)).toContain('"msg":"stopped"');
    }
    {
      using database = closing(at.database());
      const ended = database.db.prepare("select state from messages order by id").pluck().all();
      expect(ended.slice(0, 2)).toEqual(["done", "done"]);
    }
    await using server = await at.start();
    await untilIdle(at);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    using database = closing(at.database());
    expect(faultsOf(database.db, sent)).toEqual([]);
    expect(model.requests).toHaveLength(3);
  });

  test("a call over HTTP that waits for its result still gets it, also at Ctrl-C (SIGINT)", async () => {
    await using model = startModelServer({ fault: "slow", slow_ms: 500 });
    await using at = await house({
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
    });
    await using server = await at.start();
    const { api_key } = await withInbox(at, server);
    const call = fetch(`${server.http}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": api_key, "content-type": "application/json" },
      body: JSON.stringify({ instruction: "Say hello" }),
    });
    await model.received(1);
    server.kill("SIGINT");
    const answer = await call;
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ status: "done", credits: { charged: 1 } });
    expect(await server.exited).toBe(0);
  });

  test("a second signal ends it at once, and the work is redone at the next start", async () => {
    await using model = startModelServer({ fault: "hang" });
    await using at = await house({
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
    });
    const sent = new Set(["only@x.example"]);
    {
      await using server = await at.start();
      const { to } = await withInbox(at, server);
      await send(server, to, "only@x.example");
      await model.received(1);
      server.kill("SIGTERM");
      await until(() => server.log().includes("stopping"));
      const before = performance.now();
      server.kill("SIGTERM");
      expect(await server.exited).not.toBe(0);
      expect(performance.now() - before).toBeLessThan(2_000);
    }
    model.fault = "none";
    await using server = await at.start();
    await untilIdle(at);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    using database = closing(at.database());
    expect(faultsOf(database.db, sent)).toEqual([]);
    expect(model.requests).toHaveLength(2);
  });
});

test("a database that a newer version has written is refused with a sentence and left alone", async () => {
  await using at = await house();
  await account(at, OWNER);
  {
    using database = closing(at.database());
    database.db.exec("insert into kysely_migration values ('9999-of-tomorrow', '2030-01-01')");
  }
  for (const words of [["serve"], ["user", "list"], ["migrate"]]) {
    const refused = await at.cli(...words);
    expect(refused.code).toBe(1);
    expect(refused.err).toStartWith(
      "This database was written by a newer Mailwright (it has the migration 9999-of-tomorrow). ",
    );
  }
  using database = closing(at.database());
  expect(database.db.prepare("select count(*) from users").pluck().get()).toBe(1);
});
