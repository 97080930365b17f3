import { sql } from "kysely";
import type { Trigger } from "./triggers.ts";

/** Jobs that hold up later ones of their lane; dead jobs do not. The exact condition of the partial index. */
const UNENDED = "status in ('pending', 'running')";

const isInLane = (row: string) => `${row}.lane is not null and ${row}.${UNENDED}`;
const first = (lane: string) =>
  sql.raw(`(select id from jobs where lane = ${lane} and ${UNENDED} order by id limit 1)`);

/** Marks a new job as behind the first of its lane, and the next job with a later id as behind the new one. */
const placeNew = sql`
  update jobs set behind = id > ${first("new.lane")}
    where lane = new.lane and ${sql.raw(UNENDED)} and id in (new.id,
      (select id from jobs where lane = new.lane and ${sql.raw(UNENDED)} and id > new.id order by id limit 1))`;

/**
 * Triggers that maintain `jobs.behind` and `jobs.later`. A job left marked by mistake would never start, so the
 * database does it for every writer, a SQLite shell included.
 */
export const JOB_TRIGGERS: Trigger[] = [
  [
    "lane_insert",
    `after insert on jobs when ${isInLane("new")}
      and exists (select 1 from jobs where lane = new.lane and ${UNENDED} and id <> new.id)`,
    placeNew,
  ],
  [
    "lane_delete",
    `after delete on jobs when old.behind = 0 and ${isInLane("old")}`,
    sql`update jobs set behind = 0 where id = ${first("old.lane")}`,
  ],
  [
    // Not for a job that is only started or returned to the queue.
    "lane_move",
    `after update of id, lane, status on jobs when (${isInLane("old")} or ${isInLane("new")})
      and not (old.id = new.id and old.lane = new.lane and ${isInLane("old")} and ${isInLane("new")})`,
    sql`update jobs set behind = 0 where id in (new.id, ${first("old.lane")}); ${placeNew}`,
  ],
  [
    // The next claim checks with its clock whether the time has come.
    "run_at_change",
    "after update of run_at on jobs when new.later = 0 and new.run_at <> old.run_at",
    sql`update jobs set later = 1 where id = new.id`,
  ],
];
