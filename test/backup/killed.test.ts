import { expect, test } from "bun:test";
import { cp } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { backupLab, contentOf, restored } from "../support/backups.ts";

const SCRIPT = join(import.meta.dir, "../fixtures/killed-restore.ts");
const AT_ONCE = 3;
/** More changes of names than a restore makes. */
const MAX_STEPS = 60;

test("a restore that is killed at any step leaves the old content or the new, whole, and can be made again", async () => {
  await using lab = await backupLab();
  const old = await lab.other("old");
  const seen = { old: 0, fresh: 0 };
  const tryAt = async (step: number): Promise<boolean> => {
    const config = lab.config(`step-${step}`);
    const { dir } = config.data;
    await cp(old.data.dir, dir, { recursive: true });
    const child = Bun.spawn([process.execPath, SCRIPT, dir, lab.archive, String(step)], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const said = await new Response(child.stdout).text();
    await child.exited;
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
  for (let step = 1, done = false; !done; step += AT_ONCE) {
    expect(step).toBeLessThan(MAX_STEPS);
    done = (await Promise.all(Array.from({ length: AT_ONCE }, (_, more) => tryAt(step + more)))).some(
      Boolean,
    );
  }
  expect(seen.old).toBeGreaterThan(3);
  expect(seen.fresh).toBeGreaterThan(8);
  console.log(
    `restores killed or ended: the old content was left ${seen.old} times, the new ${seen.fresh} times`,
  );
}, 60_000);
