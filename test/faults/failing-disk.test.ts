import { expect, test } from "bun:test";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { startOnFailingDisk, whyNoFaults } from "./failing-disk.ts";
import { account, house, inbox } from "./house.ts";
import { closing, faultsOf, startLoad, untilIdle } from "./load.ts";
import { ask, desk, expectRefusals, linesWith, mail, readyz } from "./surfaces.ts";

/** `FAULT_ROUNDS=50 bun test test/faults/failing-disk.test.ts` for the full run, `FAULT_SEED=…` for the moments of an earlier one. */
const ROUNDS = Number(process.env["FAULT_ROUNDS"] ?? 3);
const ROUND_MS = 5_000;
const FAILS_MS = 300;

const reason = whyNoFaults();
if (reason !== undefined) console.log(`A failing disk is not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "a disk that cannot be written is said once, reads go on, and all is well as soon as it can",
  async () => {
    await using at = await house();
    const { server, disk } = await startOnFailingDisk(at);
    await using _server = server;
    const owner = await desk(at, server);
    const taken = new Set<string>();
    for (const [call, errno] of [
      ["io/rw/pwrite*", "EROFS"],
      ["io/rw/pwrite*", "EIO"],
      ["io/sync/fsync", "EIO"],
    ] as const) {
      await disk.fail(call, errno);
      for (let tries = 0; tries < 3; tries += 1)
        await expectRefusals(server, owner, "The disk does not do what it is asked to");
      expect((await ask(server, owner, "/auth/me")).status).toBe(200);
      await disk.heal(call);
      const { id, reply } = await mail(server, owner);
      expect(reply).toStartWith("250 ");
      taken.add(id);
      expect((await readyz(server)).status).toBe(200);
    }
    // Of all the refusals of some seconds.
    expect(linesWith(server, '"level":50')).toHaveLength(1);
    await untilIdle(at, 10_000);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    using database = closing(at.database());
    expect(faultsOf(database.db, taken)).toEqual([]);
  },
);

test.skipIf(reason !== undefined)(
  "what a failed sync did not take is not believed: no mail is acknowledged by it, lost or doubled, also when the process dies",
  async () => {
    const chance = chanceFrom(seedFrom("FAULT_SEED", "failing syncs"));
    await using at = await house();
    const owner = await account(at, "ann@client.example");
    let to = "";
    {
      await using first = await at.start();
      to = await inbox(first, owner);
    }
    let address: { host: string; port: number } | undefined;
    const load = startLoad({ server: () => address, to: [to], from: [owner.email], bytes: 20_000 });
    for (let round = 0; round < ROUNDS; round += 1) {
      const { server, disk } = await startOnFailingDisk(at);
      await using _server = server;
      address = server.smtp;
      await load.reached(load.acknowledged.size + 10);
      await disk.fail("io/sync/*", "EIO");
      await Bun.sleep(chance() * FAILS_MS);
      if (round % 2 === 0) {
        await load.refused(load.refusals.length + 1);
        await disk.heal("io/sync/*");
        await load.reached(load.acknowledged.size + 10);
      }
      address = undefined;
      server.kill("SIGKILL");
      await server.exited;
    }
    await using last = await at.start();
    address = last.smtp;
    await load.reached(load.acknowledged.size + 10);
    await load.stop();
    await untilIdle(at, 30_000);
    last.kill("SIGTERM");
    expect(await last.exited).toBe(0);
    expect(load.refusals.filter((refusal) => !refusal.startsWith("451 4.3.0 "))).toEqual([]);
    expect(load.refusals.length).toBeGreaterThan(0);
    using database = closing(at.database());
    expect(faultsOf(database.db, load.acknowledged)).toEqual([]);
    console.log(
      `failing syncs: rounds ${ROUNDS}, refusals ${load.refusals.length}, mails acknowledged ` +
        `${load.acknowledged.size}, lost 0, doubled 0`,
    );
  },
  ROUNDS * ROUND_MS + 40_000,
);
