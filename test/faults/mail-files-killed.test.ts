import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, createApp } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { namedIn, namedSegments } from "../../src/db/segment-rows.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { sweepLater } from "../../src/jobs/erase.ts";
import { voidLeases } from "../../src/jobs/queue.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { createLog } from "../../src/lib/log.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { layKeys } from "../support/keys.ts";
import { leftOver, lettersOf, storeMail } from "../support/mail-files.ts";

const SCRIPT = join(import.meta.dir, "../fixtures/killed-mail-files.ts");
const AT_ONCE = 3;
/** `EVERY_STEP=1` for the full run; each run takes one step in so many, beginning by chance, and says with which seed. */
const STRIDE = process.env["EVERY_STEP"] === undefined ? 10 : 1;
/** More steps than there are. */
const MAX_STEPS = 150;
const DROPPED = new Set(["a", "c", "d", "e"]);

test("mails are neither lost nor shared nor left behind by a kill between writing, committing, erasing and moving", async () => {
  const base = await mkdtemp(join(tmpdir(), "mailwright-killed-"));
  let kills = 0;
  const tryAt = async (step: number): Promise<boolean> => {
    const dir = join(base, String(step));
    await layKeys(dir);
    const child = Bun.spawn([process.execPath, SCRIPT, dir, String(step)], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const said = (await new Response(child.stdout).text()).split("\n");
    await child.exited;
    expect([step, await faultsAfter(dir, said)]).toEqual([step, []]);
    await rm(dir, { recursive: true });
    if (said.includes("swept")) return true;
    kills += 1;
    return false;
  };
  const chance = chanceFrom(seedFrom("FAULT_SEED", "kills"));
  for (let step = 1 + Math.floor(chance() * STRIDE), done = false; !done; step += AT_ONCE * STRIDE) {
    expect(step).toBeLessThan(MAX_STEPS);
    const ended = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, more) => tryAt(step + more * STRIDE)),
    );
    done = ended.some(Boolean);
  }
  expect(kills).toBeGreaterThan(30 / STRIDE);
  console.log(`killed ${kills} times between two steps: no mail lost, no byte shared, none left behind`);
  await rm(base, { recursive: true });
}, 180_000);

/** What the next start finds wrong, in words. */
async function faultsAfter(dir: string, said: string[]): Promise<string[]> {
  await using app = await createApp(defaultConfig({ data: { dir } }), {
    log: createLog({ level: "silent", format: "text" }),
  });
  await using worker = createWorker(app, jobHandlers(app));
  Object.assign(app, { worker });
  await app.write(voidLeases);
  const look = async (): Promise<string[]> => [
    ...mistaken(await lettersOf(app), said),
    ...(await shared(app)),
  ];
  const at_start = await look();
  await storeMail(app, "z");
  const with_next = await look();
  await app.write((tx) => sweepLater(app, tx));
  await worker.drain();
  const left = Object.entries(await leftOver(app));
  return [
    ...at_start,
    ...with_next,
    ...(await look()),
    ...left.map(([name, bytes]) => `${bytes} bytes of nobody are left in ${name}`),
  ];
}

/** What can be read, against what was said before the kill. */
function mistaken(found: Record<string, string>, said: string[]): string[] {
  const has = (words: string): boolean => said.includes(words);
  const lost = "abcdefgh"
    .split("")
    .filter((letter) => has(`stored ${letter}`) && !(letter in found))
    .filter((letter) => !(DROPPED.has(letter) && has("dropping")));
  const back = Object.keys(found).filter((letter) => DROPPED.has(letter) && has("dropped"));
  const others = Object.entries(found).filter(([id, letter]) => id !== letter);
  return [
    ...lost.map((letter) => `${letter} is lost`),
    ...back.map((letter) => `${letter} is back`),
    ...others.map(([id, letter]) => `${id} reads ${letter}`),
  ];
}

async function shared(app: App): Promise<string[]> {
  const faults: string[] = [];
  for (const { segment } of await namedSegments(app.db)) {
    const ranges = await namedIn(app.db, segment);
    const twice = ranges.filter(({ offset }, index) => {
      const before = ranges[index - 1];
      return before !== undefined && before.offset + before.size > offset;
    });
    faults.push(...twice.map(({ offset }) => `bytes at ${offset} of ${segment} are shared`));
  }
  return faults;
}
