import { expect, test } from "bun:test";
import { cp, mkdir, readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { keepNewest, SCHEDULED } from "../../src/backup/kept.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { backupLab, contentOf, NOW, restored } from "../support/backups.ts";

const FIXTURES = join(import.meta.dir, "../fixtures");
const AT_ONCE = 3;
/** `EVERY_STEP=1` for all steps; each run takes one in so many, beginning by chance, and says with which seed. */
const STRIDES =
  process.env["EVERY_STEP"] === undefined ? { restore: 6, backup: 3 } : { restore: 1, backup: 1 };
/** More steps than there are. */
const MAX_STEPS = 200;

test("a restore that is killed at any step leaves the old content or the new, whole, and can be made again", async () => {
  await using lab = await backupLab();
  const old = await lab.other("old");
  const seen = { old: 0, fresh: 0 };
  const tryAt = async (step: number): Promise<boolean> => {
    const config = lab.config(`step-${step}`);
    const { dir } = config.data;
    await cp(old.data.dir, dir, { recursive: true });
    const said = await killedAt(step, "killed-restore.ts", dir, lab.archive);
    const decided = existsSync(join(dir, ".mailwright-restore", "plan.json"));
    const { accounts, mails } = await contentOf(config);
    expect([step, mails]).toEqual([step, [70_000]]);
    expect([step, accounts.length]).toEqual([step, 1]);
    const fresh = accounts[0] === "ada@example.com";
    if (decided || said !== "") expect([step, fresh]).toEqual([step, true]);
    expect([step, existsSync(join(dir, ".mailwright-restore"))]).toEqual([step, false]);
    seen[fresh ? "fresh" : "old"] += 1;
    expect(await restored(config, lab.archive)).toMatchObject({ manifest: { counts: { accounts: 1 } } });
    expect((await contentOf(config)).accounts).toEqual(["ada@example.com"]);
    return said.includes("restored");
  };
  await atEach(STRIDES.restore, tryAt);
  expect(seen.old).toBeGreaterThan(20 / STRIDES.restore);
  expect(seen.fresh).toBeGreaterThan(20 / STRIDES.restore);
  console.log(
    `restores killed or ended: the old content was left ${seen.old} times, the new ${seen.fresh} times`,
  );
}, 240_000);

test("a backup that is killed at any step leaves the older archive or the new one, whole, and the next leaves nothing else", async () => {
  await using lab = await backupLab();
  const older = "mailwright-20260101T000000Z.zip";
  const newer = "mailwright-20260102T000000Z.zip";
  const seen = { older: 0, newer: 0 };
  await atEach(STRIDES.backup, async (step) => {
    const folder = join(lab.base, `backups-${step}`);
    const { dir } = lab.config(`source-${step}`).data;
    await cp(lab.source.data.dir, dir, { recursive: true });
    await mkdir(folder);
    await cp(lab.archive, join(folder, older));
    const said = await killedAt(step, "killed-backup.ts", dir, join(folder, newer));
    const left = (await readdir(folder)).filter((name) => name.endsWith(".zip"));
    for (const name of left) {
      const config = lab.config(`from-${step}-${name}`);
      expect([step, name, await restored(config, join(folder, name))]).toMatchObject([
        step,
        name,
        { manifest: { counts: { accounts: 1 } } },
      ]);
      expect(await contentOf(config)).toEqual({ accounts: ["ada@example.com"], mails: [70_000] });
    }
    seen.older += left.includes(older) ? 1 : 0;
    seen.newer += left.includes(newer) ? 1 : 0;
    expect([step, left.length]).not.toEqual([step, 0]);
    const source = sourceOf(lab.config(`source-${step}`), NOW);
    await backupToFile(source, join(folder, newer), new AbortController().signal);
    await keepNewest(join(folder, newer), SCHEDULED, 1);
    expect([step, await readdir(folder)]).toEqual([step, [newer]]);
    return said.includes("made");
  });
  expect(seen.older).toBeGreaterThan(8 / STRIDES.backup);
  expect(seen.newer).toBeGreaterThan(4 / STRIDES.backup);
  console.log(
    `backups killed or ended: the older archive was left ${seen.older} times, the new ${seen.newer} times`,
  );
}, 240_000);

/** What the script says that is killed before its n-th step on the disk. */
async function killedAt(step: number, script: string, ...words: string[]): Promise<string> {
  const child = Bun.spawn([process.execPath, join(FIXTURES, script), ...words, String(step)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const said = await new Response(child.stdout).text();
  await child.exited;
  return said;
}

/** Tries one step in so many, some at once, until one of them comes to the end. */
async function atEach(stride: number, tryAt: (step: number) => Promise<boolean>): Promise<void> {
  const first = 1 + Math.floor(chanceFrom(seedFrom("FAULT_SEED", "kills"))() * stride);
  for (let step = first, done = false; !done; step += AT_ONCE * stride) {
    expect(step).toBeLessThan(MAX_STEPS);
    const ended = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, more) => tryAt(step + more * stride)),
    );
    done = ended.some(Boolean);
  }
}
