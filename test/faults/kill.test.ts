import { expect, test } from "bun:test";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { startModelServer } from "../support/model-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { closing, faultsOf, type Load, startLoad, untilIdle, within } from "./load.ts";

/** `FAULT_ROUNDS=50 bun test test/faults/kill.test.ts` for the full run, `FAULT_SEED=…` for the moments of an earlier one. */
const ROUNDS = Number(process.env["FAULT_ROUNDS"] ?? 4);
const ROUND_MS = 4_000;
/** A server is killed up to this long after it was started, or after it got ready. */
const LIVES_MS = 800;
const IDLE_MS = 60_000;
const EXIT_MS = 40_000;

/** Kills the server `ROUNDS` times at random moments while mail comes in, and lets it finish its work in the end. */
async function killing(at: House): Promise<{ load: Load; kills: number }> {
  const chance = chanceFrom(seedFrom("FAULT_SEED", "kills"));
  const owners = [await account(at, "ann@client.example"), await account(at, "bob@client.example")];
  const to: string[] = [];
  {
    await using first = await at.start();
    for (const owner of [...owners, ...owners]) to.push(await inbox(first, owner));
  }
  let server: ServerProcess | undefined;
  const from = ["ann@client.example", "bob@client.example", "eve@stranger.example", "joe@other.example"];
  const load = startLoad({ server: () => server?.smtp, to, from, clients: 12, pause_ms: 1 });
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round % 4 === 3) {
      // In the middle of its start, too.
      const child = at.spawn();
      await Bun.sleep(chance() * LIVES_MS);
      child.kill("SIGKILL");
      await child.exited;
      continue;
    }
    server = await at.start();
    await Bun.sleep(chance() * LIVES_MS);
    server.kill("SIGKILL");
    await server.exited;
    server = undefined;
  }
  server = await at.start();
  await load.reached(load.acknowledged.size + 10);
  await load.stop();
  await untilIdle(at);
  server.kill("SIGTERM");
  const last = server;
  expect(await within(EXIT_MS, server.exited, () => `the server to end:\n${last.log()}`)).toBe(0);
  return { load, kills: ROUNDS };
}

test(
  "kill -9 under load loses no acknowledged mail, doubles none and charges each once",
  async () => {
    await using at = await house();
    const { load, kills } = await killing(at);
    using database = closing(at.database());
    expect(faultsOf(database.db, load.acknowledged)).toEqual([]);
    expect(load.refusals).toEqual([]);
    console.log(`kills ${kills}, mails acknowledged ${load.acknowledged.size}, lost 0, doubled 0 (capture)`);
  },
  ROUNDS * ROUND_MS + 2 * IDLE_MS,
);

test(
  "kill -9 in the middle of model calls and of handing replies to a relay loses no mail, doubles none and charges each once",
  async () => {
    await using model = startModelServer({ fault: "slow", slow_ms: 40 });
    await using sink = await startSmtpSink({ starttls: false });
    await using at = await house({
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [1, 1, 1] },
      egress: { allow: ["127.0.0.1"] },
    });
    const { load, kills } = await killing(at);
    using database = closing(at.database());
    expect(faultsOf(database.db, load.acknowledged)).toEqual([]);
    const handed = sink.mails.map(({ raw }) => /^Message-ID: (<.*>)/im.exec(raw.toString("latin1"))?.[1]);
    const queued = database.db.prepare("select rfc_message_id from outgoing_mails").pluck().all();
    expect(new Set(handed.map(bare))).toEqual(new Set(queued.map((id) => bare(String(id)))));
    // Between the relay's 250 and our note of it nobody can be exactly once (RFC 1047): the id is the same again.
    const repeated = handed.length - queued.length;
    expect(repeated).toBeLessThanOrEqual(kills * 16);
    console.log(
      `kills ${kills}, mails acknowledged ${load.acknowledged.size}, lost 0, doubled 0, ` +
        `handed to the relay again under the same Message-ID ${repeated} (relay)`,
    );
  },
  ROUNDS * ROUND_MS + 2 * IDLE_MS,
);

function bare(id: string | undefined): string {
  return (id ?? "").replace(/^<|>$/g, "");
}
