import { expect, test } from "bun:test";
import { account, house, inbox } from "./house.ts";
import { closing, startLoad, untilIdle, within } from "./load.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { until } from "../support/until.ts";

const ROUNDS = Number(process.env["FAULT_ROUNDS"] ?? 3);
const ROUND_MS = 6_000;
const EXIT_MS = 40_000;
/** Long enough for some mails to end, and for some of them to be indexed. */
const LIVES_MS = 2_500;

test(
  "kill -9 between the end of a message and its indexing leaves none that cannot be found, and none twice",
  async () => {
    const chance = chanceFrom(seedFrom("FAULT_SEED", "kills before indexing"));
    await using at = await house();
    const owner = await account(at, "ann@client.example");
    const to: string[] = [];
    {
      await using first = await at.start();
      to.push(await inbox(first, owner));
    }
    let server: Awaited<ReturnType<typeof at.start>> | undefined;
    const from = ["ann@client.example"];
    const load = startLoad({ server: () => server?.smtp, to, from, clients: 4, pause_ms: 5 });
    for (let round = 0; round < ROUNDS; round += 1) {
      server = await at.start();
      await Bun.sleep(LIVES_MS * chance());
      server.kill("SIGKILL");
      await server.exited;
      server = undefined;
    }
    server = await at.start();
    await load.reached(load.acknowledged.size + 10);
    await load.stop();
    await untilIdle(at);
    using database = closing(at.database());
    const one = (query: string) => database.db.prepare(query).pluck().get();
    await until(() => one("select count(*) from unindexed_messages") === 0, 30_000);
    server.kill("SIGTERM");
    const last = server;
    expect(await within(EXIT_MS, server.exited, () => `the server to end:\n${last.log()}`)).toBe(0);
    const ended = one("select count(*) from messages where state <> 'received'");
    expect(ended).toBeGreaterThanOrEqual(10);
    expect(one("select count(*) from indexed_messages i join messages m on m.id = i.message_id")).toBe(ended);
    expect(one("select count(*) from indexed_messages")).toBe(ended);
    expect(one("select total(messages) from text_slots")).toBe(ended);
    expect(database.db.pragma("integrity_check", { simple: true })).toBe("ok");
  },
  ROUNDS * ROUND_MS + 90_000,
);
