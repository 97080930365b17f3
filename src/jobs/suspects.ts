import type { App } from "../app.ts";
import type { JobKind } from "./kinds.ts";

/** After this many starts without an end, because the process was killed each time, a job counts as a suspect. */
const WATCHED_FROM = 5;
/** After this many, only one such job at a time is started and runs to its end. */
const ALONE_FROM = 10;
/** After this many, the job is given up. */
export const GIVEN_UP_FROM = 15;
/** How long a suspect waits at most before it is looked at again. Usually it is called earlier. */
export const SUSPECT_AGAIN_SECONDS = 5;
/**
 * How long a suspect is watched at first, in milliseconds. Reading, building and memory can kill the process; waiting
 * does not.
 */
export const WATCH_MS = 2_000;
/** The factor by which it is watched longer with each further start, to find a job that kills the process late. */
const LONGER = 4;

type Suspect = { id: string; kind: JobKind };

export interface Suspects {
  /**
   * Must be called before a job is started that the process did not survive `unended` times. Returns a function to call
   * at the job's end, or null if the job must wait until its id is passed to `call`.
   */
  begin(job: Suspect, unended: number): (() => void) | null;
}

interface SuspectOptions {
  watch_ms: number;
  /** Called with waiting jobs that may be tried again. */
  call: (kind: JobKind, ids: string[]) => void;
}

/**
 * The suspects of one kind with the same number of starts. Each number has its own gate, so that a job watched for
 * longer never holds up one watched less.
 */
interface Gate {
  /** How many jobs are being tried, and how many (`width`) may be at once. */
  tried: number;
  width: number;
  /** The ids of the jobs that wait. */
  waiting: Set<string>;
}

/**
 * Finds the job that kills the process among those that were running each time. Suspects are started one, then two,
 * then four at once and so on; each makes room when it has ended or survived its watch. So fewer other jobs die along
 * with the killer at each start, and after a few starts none. From `ALONE_FROM` on it runs alone.
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
      let is_tried = true;
      const passed = (): void => {
        if (!is_tried) return;
        is_tried = false;
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

/** Returns a warning that jobs wait while suspects are tried; undefined while none does. */
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
