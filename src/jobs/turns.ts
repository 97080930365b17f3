import type { Db } from "../db/database.ts";
import { readyLines, ripen } from "../db/due-jobs.ts";
import { shareOf } from "./queue.ts";

/** How many lines (each the due jobs of one account) one search covers. */
export const LINES_AT_ONCE = 32;
/** For how many pairs of account and target the last use is remembered. */
const USES_KNOWN = 1_000;
/** How many jobs one search marks as due; if there are more, another follows at once. */
const RIPENED_AT_ONCE = 256;

/** The lines whose turn it is, as found by one search. */
export interface Look {
  /** The lines whose turn it is, then those that were asked for. */
  lines: string[];
  /** How many of `lines` are there because it is their turn. */
  in_turn: number;
  /** Whether no other line has a due job. */
  is_all: boolean;
  /** The unix second at which the next job falls due; null for none. */
  next_at: number | null;
}

interface Waiting {
  account: string | null;
  target: string | null;
}

/**
 * Lets lines with due jobs take turns where a claim cannot look at all of them. The state is only whose turn it is; the
 * jobs are read each time, so a restart loses nothing.
 */
export interface Turns {
  look: (tx: Db, what: { kind: string; now: number }) => Promise<Look>;
  /**
   * Sorts lines that have had their turn behind those that have not. Among jobs for one target, the account that used
   * it the longest time ago comes first.
   */
  inOrder: <Row extends Waiting>(look: Look, due: Row[]) => Row[];
  /** Records the jobs that were claimed. */
  took: (rows: Iterable<Waiting>) => void;
  /** Records which lines got a job from a search, and whether they had more. */
  settle: (look: Look, given: Set<string>, is_left: boolean) => void;
  /** Adds this line to the next search, so that it need not wait for its turn when nobody else can start. */
  ask: (line: string) => void;
}

export function createTurns(): Turns {
  /** The line at which the next search begins. */
  let from = "";
  /** The lines that have had their turn in this round. */
  let served = new Set<string>();
  const asked = new Set<string>();
  const uses = createTargetUses();

  const ask = (line: string): void => {
    if (asked.size < LINES_AT_ONCE) asked.add(line);
  };

  /** Returns the next lines in order, from `from` on and then from the first. */
  const nextLines = async (tx: Db, kind: string): Promise<{ lines: string[]; next_at: number | null }> => {
    const next = await linesFrom(tx, { kind, from, limit: LINES_AT_ONCE });
    if (from === "" || next.lines.length === LINES_AT_ONCE) return next;
    const first = await linesFrom(tx, { kind, from: "", limit: LINES_AT_ONCE });
    const lines = [...new Set([...next.lines, ...first.lines])].slice(0, LINES_AT_ONCE);
    return { lines, next_at: next.next_at };
  };

  return {
    async look(tx, { kind, now }) {
      let next = await nextLines(tx, kind);
      if (next.next_at !== null && next.next_at <= now) {
        for (const { line } of await ripen(tx, { kind, now, limit: RIPENED_AT_ONCE })) ask(line);
        next = await nextLines(tx, kind);
      }
      const { lines, next_at } = next;
      const is_all = lines.length < LINES_AT_ONCE;
      if (is_all) {
        asked.clear();
        return { lines, in_turn: lines.length, is_all, next_at };
      }
      const wanted = [...lines, ...asked];
      asked.clear();
      // Adds the lines of households: jobs of strangers start only if it is known what their household waits for.
      const households = wanted.map((line) => shareOf(line, null).account);
      return { lines: [...new Set([...wanted, ...households])], in_turn: lines.length, is_all, next_at };
    },
    inOrder({ lines, in_turn, is_all }, due) {
      if (is_all && served.size === 0) return uses.inOrder(due);
      const first = new Set(lines.slice(0, in_turn).filter((line) => !served.has(line)));
      const { true: early = [], false: late = [] } = Object.groupBy(due, ({ account }) =>
        first.has(account ?? "") ? "true" : "false",
      );
      return uses.inOrder([...early, ...late]);
    },
    took: (rows) => uses.add(rows),
    settle(look, given, is_left) {
      ({ from, served } = nextTurn(look, { served, given, is_left }));
    },
    ask,
  };
}

/** Returns where the next search begins, and who has had their turn by then. */
function nextTurn(
  { lines, in_turn, is_all }: Look,
  { served, given, is_left }: { served: ReadonlySet<string>; given: ReadonlySet<string>; is_left: boolean },
): { from: string; served: Set<string> } {
  if (is_all && is_left) return { from: "", served: new Set() };
  const turn = lines.slice(0, in_turn);
  const had = new Set(turn.filter((line) => served.has(line) || given.has(line)));
  // When a line has its second turn in a round, those still waiting were passed over for want of memory or of a free target.
  const is_second = [...given].some((line) => served.has(line) || !turn.includes(line));
  const next = is_left || is_second ? undefined : turn.find((line) => !had.has(line));
  return {
    from: is_all ? "" : (next ?? behind(turn.at(-1) ?? "")),
    served: next === undefined ? new Set() : had,
  };
}

/** Remembers the order in which accounts used targets. */
function createTargetUses() {
  const uses = new Map<string, number>();
  let count = 0;
  const last = (one: Waiting): number => uses.get(placeOf(one)) ?? 0;
  return {
    add(rows: Iterable<Waiting>): void {
      for (const row of rows) {
        if (row.target === null) continue;
        const place = placeOf(row);
        uses.delete(place);
        uses.set(place, ++count);
        const [oldest = ""] = uses.keys();
        if (uses.size > USES_KNOWN) uses.delete(oldest);
      }
    },
    /**
     * Sorts the jobs for each target, by the account that used it the longest time ago or never, among the places that
     * the target has in the order.
     */
    inOrder<Row extends Waiting>(due: Row[]): Row[] {
      if (uses.size === 0) return due;
      const sorted = new Map<string | null, Iterator<Row>>();
      for (const [target, rows] of Map.groupBy(due, (row) => row.target))
        if (target !== null) sorted.set(target, rows.toSorted((a, b) => last(a) - last(b)).values());
      return due.map((row) => sorted.get(row.target)?.next().value ?? row);
    },
  };
}

function placeOf({ account, target }: Waiting): string {
  return `${account ?? ""}\n${target ?? ""}`;
}

async function linesFrom(
  tx: Db,
  what: { kind: string; from: string; limit: number },
): Promise<{ lines: string[]; next_at: number | null }> {
  const [found] = await readyLines(tx, what);
  return { lines: JSON.parse(found?.lines ?? "[]") as string[], next_at: found?.next_at ?? null };
}

/** Returns the smallest name that a line behind this one can have. */
function behind(line: string): string {
  return `${line}\u0001`;
}
