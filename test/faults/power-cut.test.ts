import { expect, test } from "bun:test";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { type Image, imageFile, whyNoMounts } from "./disks.ts";
import { account, house, inbox } from "./house.ts";
import { closing, faultsOf, startLoad, untilIdle } from "./load.ts";

/** `POWER_CUTS=20 bun test test/faults/power-cut.test.ts` for the full run, `FAULT_SEED=…` for the moments of an earlier one. */
const CUTS = Number(process.env["POWER_CUTS"] ?? 2);
const CUT_MS = 30_000;
const IMAGE_MB = 512;
const LOAD_MS = 600;
/** Few enough that no checkpoint, which syncs in either mode, comes to their rescue. */
const CONTROL_COMMITS = 100;

const reason = await whyNoMounts("loop");
if (reason !== undefined) console.log(`Power cuts are not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "every mail that was acknowledged before a power cut is there after it, and is finished",
  async () => {
    const chance = chanceFrom(seedFrom("FAULT_SEED", "power cuts"));
    await using image = await imageFile(IMAGE_MB);
    await using disk = await image.mount();
    await using at = await house({}, join(disk.path, "data"));
    const owner = await account(at, "ann@client.example");
    await using server = await at.start();
    const to = [await inbox(server, owner), await inbox(server, owner)];
    const from = [owner.email, "eve@other.example"];
    const load = startLoad({ server: () => server.smtp, to, from, bytes: 2_000 });
    let checked = 0;
    for (let cut = 0; cut < CUTS; cut += 1) {
      await load.reached(load.acknowledged.size + 20);
      await Bun.sleep(chance() * LOAD_MS);
      server.kill("SIGSTOP");
      await using copy = await image.copy();
      // The server has been standing still since before the copy: what is known now was said before.
      const acknowledged = new Set(load.acknowledged);
      server.kill("SIGCONT");
      expect(await afterPowerCut(copy, acknowledged)).toEqual([]);
      checked += acknowledged.size;
    }
    await load.stop();
    console.log(
      `power cuts ${CUTS}, mails acknowledged ${load.acknowledged.size}, looked for ${checked} in all, lost 0, doubled 0`,
    );
  },
  CUTS * CUT_MS + 10_000,
);

/** What a server that starts on the copied disk makes of it. */
async function afterPowerCut(copy: Image, acknowledged: Set<string>): Promise<string[]> {
  await using disk = await copy.mount();
  await using at = await house({}, join(disk.path, "data"));
  await using server = await at.start();
  await untilIdle(at);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  using database = closing(at.database());
  return faultsOf(database.db, acknowledged);
}

test.skipIf(reason !== undefined)(
  "the same cut does lose commits when they are not synced, so the cut is a real one",
  async () => {
    expect(await lostCommits("FULL")).toBe(0);
    const lost = await lostCommits("NORMAL");
    expect(lost).toBeGreaterThan(0);
    console.log(`control: of ${CONTROL_COMMITS} commits FULL lost 0, NORMAL lost ${lost}`);
  },
  CUT_MS * 2,
);

const DATABASE = new URL("../../src/db/database.ts", import.meta.url).href;

/** Commits through our own database code that were answered before a power cut and are gone after it. */
async function lostCommits(synchronous: "FULL" | "NORMAL"): Promise<number> {
  await using image = await imageFile(64);
  await using disk = await image.mount();
  const script = `
    import { openDatabase } from ${JSON.stringify(DATABASE)};
    import { sql } from "kysely";
    const database = openDatabase("sqlite:${join(disk.path, "control.db")}");
    await sql\`create table notes (id integer primary key, text text)\`.execute(database.db);
    await sql\`pragma synchronous = ${synchronous}\`.execute(database.db);
    for (let id = 1; id <= ${CONTROL_COMMITS}; id += 1) {
      await database.write((tx) => sql\`insert into notes values (\${id}, \${"x".repeat(1000)})\`.execute(tx));
      console.log(id);
    }
    setInterval(() => database, 1_000);
  `;
  // Below the project, where the script finds its packages.
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: import.meta.dir,
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    let said = "";
    for await (const chunk of child.stdout) {
      said += new TextDecoder().decode(chunk);
      if (said.endsWith(`${CONTROL_COMMITS}\n`)) break;
    }
    child.kill("SIGSTOP");
    await using copy = await image.copy();
    await using left = await copy.mount();
    return CONTROL_COMMITS - kept(join(left.path, "control.db"));
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
}

function kept(path: string): number {
  try {
    using database = closing(new Sqlite(path));
    return database.db.prepare("select count(*) from notes").pluck().get() as number;
  } catch (error) {
    // Not even the table reached the disk.
    if (error instanceof Sqlite.SqliteError && error.message.includes("no such table")) return 0;
    throw error;
  }
}
