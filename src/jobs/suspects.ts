import type { App } from "../app.ts";
import type { JobKind } from "./kinds.ts";

/** How often a job may be begun without any ending, because the process was killed, before it is begun with care. */
const WATCHED_FROM = 5;
/**
 * How often, before a job may itself be what kills the process: from then on one such job at a time is begun, until it
 * ends.
 */
const ALONE_FROM = 10;
/** How often a job may be begun without any ending before it is given up. */
export const GIVEN_UP_FROM = 15;
/** How long such a job waits at the most before it is looked at again. Usually it is called earlier. */
export const SUSPECT_AGAIN_SECONDS = 5;
/**
 * For how long a job is watched at first, in milliseconds. Reading, building and memory can kill the process; waiting
 * does not.
 */
export const WATCH_MS = 2_000;
/** The factor by which it is watched longer for each further time: a job that kills late is found as well. */
const LONGER = 4;

type Suspect = { id: string; kind: JobKind };

export interface Suspects {
  /**
   * Says that a job is begun that the process did not outlive `unended` times. Returns a function to call when the job
   * has ended, or null: the job must then wait until its id is given to `call`.
   */
  begin(job: Suspect, unended: number): (() => void) | null;
}

interface SuspectOptions {
  watch_ms: number;
  /** Has waiting jobs tried again. */
  call: (kind: JobKind, ids: string[]) => void;
}

/**
 * The jobs of one kind that were begun as often as each other. There is a gate for each number, so that a job which is
 * watched for longer holds up none that is watched less.
 */
interface Gate {
  /** How many jobs are being tried, and how many (`width`) may be. */
  tried: number;
  width: number;
  /** The ids of the jobs that wait. */
  waiting: Set<string>;
}

/**
 * Finds out which of the jobs that were under way each time kills the process. The jobs in question are begun one, then
 * two, then four at once and so on, and each makes room as soon as it has ended or outlived its watch. So the killer is
 * counted with fewer of the others each time, and after a few starts with none. From `ALONE_FROM` on nothing is counted
 * with it.
 */
export function createSuspects({ watch_ms, call }: SuspectOptions): Suspects {
  const gates = new Map<string, Gate>();

  const gateOf = (kind: JobKind, unended: number): Gate => {
    const key = `${kind} ${Math.min(unended, ALONE_FROM)}`;
    const gate = gates.get(key) ?? { tried: 0, width: 1, waiting: new Set<string>() };
    gates.set(key, gate);
    return gate;
  };

  const callNext = (kind: JobKind, { waiting, width, tried }: Gate): void => {
    const next = [...waiting].slice(0, Math.max(0, width - tried));
    for (const id of next) waiting.delete(id);
    if (next.length > 0) call(kind, next);
  };

  return {
    begin({ id, kind }, unended) {
      if (unended < WATCHED_FROM) return () => undefined;
      const alone = unended >= ALONE_FROM;
      const gate = gateOf(kind, unended);
      if (gate.tried >= gate.width) {
        gate.waiting.add(id);
        return null;
      }
      gate.waiting.delete(id);
      gate.tried += 1;
      let isTried = true;
      const passed = (): void => {
        if (!isTried) return;
        isTried = false;
        gate.tried -= 1;
        if (!alone) gate.width += 1;
        callNext(kind, gate);
      };
      const watch = alone ? undefined : setTimeout(passed, watch_ms * LONGER ** (unended - WATCHED_FROM));
      watch?.unref();
      return () => {
        clearTimeout(watch);
        passed();
      };
    },
  };
}

/** Returns the warning that jobs wait for others to be tried; undefined while none does. */
export async function suspectsWarning({ db, now }: Pick<App, "db" | "now">): Promise<string | undefined> {
  const { jobs } = await db
    .selectFrom("jobs")
    .select(({ fn }) => fn.countAll<number>().as("jobs"))
    .where("status", "=", "pending")
    .where((eb) => eb(eb("attempts", "-", eb.ref("failures")), ">=", WATCHED_FROM))
    .where("run_at", "<=", now() + SUSPECT_AGAIN_SECONDS)
    .executeTakeFirstOrThrow();
  if (jobs === 0) return undefined;
  const [wait, each] = jobs === 1 ? ["1 job waits", "it"] : [`${jobs} jobs wait`, "each"];
  return `${wait} while others are tried, one or a few at a time: the server ended ${WATCHED_FROM} times or more in the middle of ${each}; \`mailwright queue list\` shows which`;
}
