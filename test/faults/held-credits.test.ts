import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { account, house } from "./house.ts";
import { closing, untilIdle } from "./load.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { until } from "../support/until.ts";

const RULES = [
  { name: "Newsletters", when: [{ field: "sender", is: ["@shop.example"] }], do: { skip: true } },
];

test("kill -9 while mail waits for a credit that is held for others loses none of it, and charges each once", async () => {
  let answers: () => Promise<string> | string = () => new Promise<never>(() => undefined);
  await using model = startModelServer({ reply: () => answers() });
  await using at = await house({
    llm: { kind: "openai_compatible", base_url: model.base_url, model: "m" },
    plans: { default: "free", free: { credits: 3, concurrent_routes: 1, inbound_per_hour: 0 } },
  });
  const owner = await account(at, "ann@client.example");
  await at.cli("user", "set-plan", owner.email, "free");
  const first = await at.start();
  const made = await fetch(`${first.http}/inboxes`, {
    method: "POST",
    headers: { "x-api-key": owner.api_key, "content-type": "application/json" },
    body: JSON.stringify({ rules: RULES }),
  });
  const { address } = (await made.json()) as { address: string };
  let number = 0;
  const send = async (server: typeof first, from: string): Promise<void> => {
    number += 1;
    const headers = { "Message-ID": `<${number}@example.net>` };
    const raw = rawMail({ from, to: address, subject: `Order ${number}`, text: `Order ${number}`, headers });
    expect(await deliver(server.smtp, { from, to: address, raw })).toStartWith("250");
  };
  const rows = (query: string) => {
    using database = closing(at.database());
    return database.db.prepare(query).all() as Record<string, unknown>[];
  };
  await send(first, "c1@customer.example");
  await model.received(1);
  await send(first, "news1@shop.example");
  await send(first, "news2@shop.example");
  for (const name of ["c2", "c3", "c4"]) await send(first, `${name}@customer.example`);
  first.kill("SIGKILL");
  await first.exited;
  expect(rows("select count(*) as n from jobs where dedupe_key like 'credits:%'")).toEqual([{ n: 3 }]);
  // The second process is killed as soon as something of it has gone on.
  {
    await using second = await at.start();
    await model.received(2);
    answers = () => "Done.";
    second.kill("SIGKILL");
    await second.exited;
  }
  {
    await using third = await at.start();
    await until(async () => rows("select 1 from messages where state = 'done'").length > 0);
    third.kill("SIGKILL");
    await third.exited;
  }
  await using last = await at.start();
  await untilIdle(at);
  last.kill("SIGTERM");
  await last.exited;
  expect(rows("select state from messages order by id").map(({ state }) => state)).toEqual([
    "done",
    "skipped",
    "skipped",
    "done",
    "done",
    "limited",
  ]);
  expect(rows("select kind, count(*) as n from ledger where kind <> 'grant' group by kind")).toEqual([
    { kind: "release", n: 2 },
    { kind: "reserve", n: 5 },
    { kind: "settle", n: 3 },
  ]);
  expect(rows("select balance from ledger order by id desc limit 1")).toEqual([{ balance: 0 }]);
}, 120_000);
