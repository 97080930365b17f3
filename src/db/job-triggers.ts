import { sql } from "kysely";
import type { Trigger } from "./triggers.ts";

/** Dead jobs stand in nobody's way. In the words of the index. */
const UNENDED = "status in ('pending', 'running')";

const isInLane = (row: string) => `${row}.lane is not null and ${row}.${UNENDED}`;
const first = (lane: string) =>
  sql.raw(`(select id from jobs where lane = ${lane} and ${UNENDED} order by id limit 1)`);

/** What has come in is behind the first of its lane, and in front of whatever has a later id. */
const placeNew = sql`
  update jobs set behind = id > ${first("new.lane")}
    where lane = new.lane and ${sql.raw(UNENDED)} and id in (new.id,
      (select id from jobs where lane = new.lane and ${sql.raw(UNENDED)} and id > new.id order by id limit 1))`;

/**
 * Have the database keep `jobs.behind` and `jobs.later`. A job that stayed marked would never be begun: whatever adds,
 * ends, moves or deletes jobs, here or in a shell of SQLite, cannot forget to.
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
    // Not where one is only begun, or given back.
    "lane_move",
    `after update of id, lane, status on jobs when (${isInLane("old")} or ${isInLane("new")})
      and not (old.id = new.id and old.lane = new.lane and ${isInLane("old")} and ${isInLane("new")})`,
    sql`update jobs set behind = 0 where id in (new.id, ${first("old.lane")}); ${placeNew}`,
  ],
  [
    // Whether that time has come is known to the clock of the next claim.
    "run_at_change",
    "after update of run_at on jobs when new.later = 0 and new.run_at <> old.run_at",
    sql`update jobs set later = 1 where id = new.id`,
  ],
];
