import { expect, test } from "bun:test";
import { join } from "node:path";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { startOnFailingDisk, whyNoFaults } from "./failing-disk.ts";
import { account, house, inbox, type ServerProcess } from "./house.ts";
import { closing, faultsOf, startLoad, untilIdle } from "./load.ts";
import { ask, type Desk, desk, expectRefusals, logged, mail, readyz } from "./surfaces.ts";

/** `FAULT_ROUNDS=50 bun test test/faults/failing-disk.test.ts` for the full run, `FAULT_SEED=…` for the moments of an earlier one. */
const ROUNDS = Number(process.env["FAULT_ROUNDS"] ?? 3);
const ROUND_MS = 5_000;
const FAILS_MS = 300;

const reason = whyNoFaults();
if (reason !== undefined) console.log(`A failing disk is not tried: ${reason}`);

/** A server whose disk can be made to fail, its owner's desk, and the ids of the mails that it acknowledges. */
async function failingRoom() {
  await using stack = new AsyncDisposableStack();
  const at = stack.use(await house());
  const { server, disk } = await startOnFailingDisk(at);
  stack.use(server);
  const owner = await desk(at, server);
  const built = stack.move();
  const taken = new Set<string>();
  return { at, server, disk, owner, taken, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

/** Stops the server, and finds each mail that was taken done once. */
async function endsWhole({ at, server, taken }: Awaited<ReturnType<typeof failingRoom>>): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  using database = closing(at.database());
  expect(faultsOf(database.db, taken)).toEqual([]);
}

test.skipIf(reason !== undefined)(
  "a disk that cannot be written is said once, reads go on, and all is well as soon as it can",
  async () => {
    await using room = await failingRoom();
    const { server, disk, owner, taken } = room;
    // The log has the salts of a new one once it has been begun anew (SQLite's file format, section 4.1).
    const saltsOfLog = async (): Promise<string> =>
      Bun.file(join(room.at.dir, "mailwright.db-wal")).slice(16, 24).text();
    for (const [call, errno] of [
      ["io/rw/pwrite*", "EROFS"],
      ["io/rw/pwrite*", "EIO"],
      ["io/sync/fsync", "EIO"],
    ] as const) {
      const log = await saltsOfLog();
      await disk.fail(call, errno);
      for (let tries = 0; tries < 3; tries += 1)
        await expectRefusals(server, owner, "The disk does not do what it is asked to");
      expect((await ask(server, owner, "/auth/me")).status).toBe(200);
      await disk.heal(call);
      const { id, reply } = await mail(server, owner);
      expect(reply).toStartWith("250 ");
      taken.add(id);
      expect((await readyz(server)).status).toBe(200);
      // What it had may have a gap on the disk, behind which nothing is found after a power cut.
      expect(await saltsOfLog()).not.toBe(log);
    }
    // One line stands for all the refusals of some seconds.
    expect(await logged(server, '"level":50')).toHaveLength(1);
    await untilIdle(room.at);
    await endsWhole(room);
  },
);

/** Long enough to lie beside the database, so that it is read from the disk when it is worked on. */
const LARGE = "word ".repeat(20_000);

test.skipIf(reason !== undefined)(
  "a disk that cannot be read uses up no try of the mails that wait, and each is done once as soon as it can",
  async () => {
    await using room = await failingRoom();
    const { server, disk, owner, taken } = room;
    await ask(server, owner, "/admin/queue/hold", { kind: "route_message" });
    for (let count = 0; count < 3; count += 1) {
      const { id, reply } = await mail(server, owner, LARGE);
      expect(reply).toStartWith("250 ");
      taken.add(id);
    }
    await disk.fail("io/rw/pread*", "EIO");
    await ask(server, owner, "/admin/queue/release", {});
    await logged(server, "a job waits", 3);
    await logged(server, "could not be looked through");
    await expectRefusals(server, owner, "The disk does not do what it is asked to");
    await disk.heal("io/rw/pread*");
    await logged(server, "is sound");
    expect((await readyz(server)).status).toBe(200);
    const waiting = await untilAllWait(server, owner);
    expect(waiting.map(({ failures }) => failures)).toEqual([0, 0, 0]);
    // They would be tried by themselves, a quarter of a minute later.
    for (const { id } of waiting)
      expect((await ask(server, owner, `/admin/queue/${id}/retry`, {})).status).toBe(204);
    await untilIdle(room.at);
    await endsWhole(room);
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
    await untilIdle(at);
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

interface Waiting {
  id: string;
  state: string;
  failures: number;
}

/** The runs of the queue, once what became of their last try is written down. */
async function untilAllWait(server: ServerProcess, owner: Desk): Promise<Waiting[]> {
  for (;;) {
    const items: Waiting[] = (await ask(server, owner, "/admin/queue?kind=route_message")).body.items;
    if (items.every(({ state }) => state === "waiting")) return items;
    await Bun.sleep(50);
  }
}
