import { expect, test } from "bun:test";
import { assert, asyncProperty, array, constantFrom, integer, record } from "fast-check";
import { sql } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { type Db, openDatabase } from "../../src/db/database.ts";
import { dueOfLines, ripen } from "../../src/db/due-jobs.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { testApp } from "../support/app.ts";
import { plansOf } from "../support/query-plans.ts";

interface Row {
  id: string;
  lane: string | null;
  status: "pending" | "running" | "dead";
}

const CHANGES = ["add", "begin", "give back", "end", "bury", "die", "revive", "rename", "move"] as const;

const rows = record({
  id: integer({ min: 10, max: 99 }).map(String),
  lane: constantFrom("one", "two", null),
  status: constantFrom<Row["status"][]>("pending", "pending", "running", "dead"),
});

/** `at` is which of the jobs that are there, as a part of all; `row` is what is to be. */
const changes = array(
  record({ change: constantFrom(...CHANGES), at: integer({ min: 0, max: 999 }), row: rows }),
  {
    maxLength: 40,
  },
);

/** Those that wait, and before which nothing of their lane is to be ended. */
function mayBegin(jobs: Row[]): string[] {
  const unended = jobs.filter(({ status }) => status !== "dead");
  const waiting = unended.filter(({ status }) => status === "pending");
  const first = ({ id, lane }: Row) =>
    lane === null || !unended.some((other) => other.lane === lane && other.id < id);
  return waiting
    .filter(first)
    .map(({ id }) => id)
    .toSorted();
}

async function due(db: Db): Promise<string[]> {
  const kind = "route_message";
  const all = { lines: '[""]', now: 1, limit: 1_000, weight: 0, full_targets: "[]" };
  await ripen(db, { kind, now: 1, limit: 1_000 });
  return (await dueOfLines(db, { kind, ...all })).map(({ id }) => id).toSorted();
}

const insert = ({ id, lane, status }: Row) =>
  sql`insert into jobs (id, kind, payload, status, lane, run_at, created)
    values (${id}, 'route_message', '{}', ${status}, ${lane}, 1, 1)`;

/** Makes a change in the database, and returns the jobs as they are then. */
async function apply(
  db: Db,
  jobs: Row[],
  { change, at, row }: { change: (typeof CHANGES)[number]; at: number; row: Row },
): Promise<Row[]> {
  const isTaken = jobs.some(({ id }) => id === row.id);
  if (change === "add") {
    if (isTaken) return jobs;
    await insert(row).execute(db);
    return [...jobs, row];
  }
  const job = jobs[Math.floor((at * jobs.length) / 1_000)];
  if (!job || (change === "rename" && isTaken)) return jobs;
  const others = jobs.filter((other) => other !== job);
  if (change === "end") {
    await sql`delete from jobs where id = ${job.id}`.execute(db);
    return others;
  }
  const wanted: Record<Exclude<typeof change, "end">, Partial<Row>> = {
    begin: { status: "running" },
    "give back": { status: "pending" },
    bury: { status: "dead", lane: null },
    die: { status: "dead" },
    revive: { status: "pending" },
    rename: { id: row.id, status: "pending" },
    move: row,
  };
  const next = { ...job, ...wanted[change], ...(isTaken ? { id: job.id } : {}) };
  await sql`update jobs set id = ${next.id}, status = ${next.status}, lane = ${next.lane}
    where id = ${job.id}`.execute(db);
  return [...others, next];
}

test("of a lane the first may begin, and all that have none, whatever is added, ended, moved or deleted", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  await migrateToLatest(db);
  await assert(
    asyncProperty(changes, constantFrom("pending", "running"), async (made, cleared) => {
      await sql`delete from jobs`.execute(db);
      let jobs: Row[] = [];
      for (const change of made) {
        jobs = await apply(db, jobs, change);
        expect(await due(db)).toEqual(mayBegin(jobs));
      }
      await sql`delete from jobs where status = ${cleared}`.execute(db);
      expect(await due(db)).toEqual(mayBegin(jobs.filter(({ status }) => status !== cleared)));
      await sql`update jobs set status = 'pending' where status <> 'dead'`.execute(db);
      const left = jobs.filter(({ status }) => status !== cleared && status !== "dead");
      expect(await due(db)).toEqual(mayBegin(left.map((job) => ({ ...job, status: "pending" }))));
    }),
    { numRuns: 200 },
  );
});

test("a claim goes past no job that waits behind others of its lane, and asks of none whether it does", async () => {
  await using t = await testApp();
  const plans = await plansOf(t, () => due(t.app.db));
  const looks = plans.at(-1)?.lines.filter((line) => line.includes("jobs")) ?? [];
  expect(
    looks.filter((line) => !line.includes("jobs_due (kind=? AND status=? AND behind=? AND later=?")),
  ).toEqual(["SEARCH job USING INDEX sqlite_autoindex_jobs_1 (id=?)"]);
});

test("what an older version has enqueued begins in the same order", async () => {
  const older = Object.entries(migrations).filter(([name]) => name < "0026");
  await assert(
    asyncProperty(array(rows, { maxLength: 20 }), async (all) => {
      await using database = openDatabase("sqlite::memory:");
      const { db } = database;
      const provider = { getMigrations: async () => Object.fromEntries(older) };
      await new Migrator({ db, provider }).migrateToLatest();
      const jobs = [...new Map(all.map((row) => [row.id, row])).values()];
      for (const job of jobs) await insert(job).execute(db);
      await migrateToLatest(db);
      expect(await due(db)).toEqual(mayBegin(jobs));
    }),
    { numRuns: 10 },
  );
});
