import type { Db } from "../db/database.ts";
import { readyLines, ripen } from "../db/due-jobs.ts";
import { shareOf } from "./queue.ts";

/** Lines (each the due jobs of one account) that one look covers, however many have work. */
export const LINES_AT_ONCE = 32;
/** How many last visits of accounts to targets are remembered. */
const VISITS_KNOWN = 1_000;
/** Jobs that one look marks as due once their time has come; if there are more, another look follows at once. */
const RIPENED_AT_ONCE = 256;

/** The lines whose turn it is, as one look found them. */
export interface Look {
  /** The lines in their turn, and behind them those that were asked for. */
  lines: string[];
  /** How many of `lines` are there in their turn. */
  in_turn: number;
  /** Whether no other line has anything that is due. */
  all: boolean;
  /** The unix second at which the next job falls due; null for none. */
  next_at: number | null;
}

interface Waiting {
  account: string | null;
  target: string | null;
}

/**
 * Has the lines of all accounts with due work take turns where a claim cannot look at all of them. Only whose turn it
 * is next is known here, and nothing is lost with it: what is due is read anew each time.
 */
export interface Turns {
  look: (tx: Db, what: { kind: string; now: number }) => Promise<Look>;
  /**
   * Puts lines that have had their turn behind those that have not. Among jobs that wait for one target, the account
   * that was there longest ago comes first.
   */
  inOrder: <Row extends Waiting>(look: Look, due: Row[]) => Row[];
  /** Notes the jobs that have been taken. */
  took: (rows: Iterable<Waiting>) => void;
  /** Notes which lines have been given anything at a look, and whether there was more to give. */
  settle: (look: Look, given: Set<string>, isLeft: boolean) => void;
  /** Has the next look cover this line too, so that it need not wait for its turn where nobody else can begin. */
  ask: (line: string) => void;
}

export function createTurns(): Turns {
  /** The line at which the next turn begins. */
  let from = "";
  /** The lines that have had their turn in this round. */
  let served = new Set<string>();
  const asked = new Set<string>();
  const visits = createVisits();

  const ask = (line: string): void => {
    if (asked.size < LINES_AT_ONCE) asked.add(line);
  };

  /** Returns the lines from `from` on; once the last line is reached, the first ones follow. */
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
      const all = lines.length < LINES_AT_ONCE;
      if (all) {
        asked.clear();
        return { lines, in_turn: lines.length, all, next_at };
      }
      const wanted = [...lines, ...asked];
      asked.clear();
      // The lines of households are added: strangers are begun only where it is known what their household waits for.
      const households = wanted.map((line) => shareOf(line, null).account);
      return { lines: [...new Set([...wanted, ...households])], in_turn: lines.length, all, next_at };
    },
    inOrder({ lines, in_turn, all }, due) {
      if (all && served.size === 0) return visits.inOrder(due);
      const first = new Set(lines.slice(0, in_turn).filter((line) => !served.has(line)));
      const { true: early = [], false: late = [] } = Object.groupBy(due, ({ account }) =>
        first.has(account ?? "") ? "true" : "false",
      );
      return visits.inOrder([...early, ...late]);
    },
    took: (rows) => visits.add(rows),
    settle({ lines, in_turn, all }, given, isLeft) {
      if (all && isLeft) {
        from = "";
        served.clear();
        return;
      }
      const turn = lines.slice(0, in_turn);
      const had = new Set(turn.filter((line) => served.has(line) || given.has(line)));
      // Once a line has its second turn, those that still wait were passed over because they lacked something.
      const second = [...given].some((line) => served.has(line) || !turn.includes(line));
      const next = isLeft || second ? undefined : turn.find((line) => !had.has(line));
      served = next === undefined ? new Set() : had;
      if (all) from = "";
      else from = next ?? behind(turn.at(-1) ?? "");
    },
    ask,
  };
}

/** Remembers which account was last at which target, and in which order. */
function createVisits() {
  const visits = new Map<string, number>();
  let count = 0;
  const last = (one: Waiting): number => visits.get(placeOf(one)) ?? 0;
  return {
    add(rows: Iterable<Waiting>): void {
      for (const row of rows) {
        if (row.target === null) continue;
        const place = placeOf(row);
        visits.delete(place);
        visits.set(place, ++count);
        const [oldest = ""] = visits.keys();
        if (visits.size > VISITS_KNOWN) visits.delete(oldest);
      }
    },
    /**
     * Leaves each target its places in the order, and gives the first of them to the account that was there longest
     * ago, or never.
     */
    inOrder<Row extends Waiting>(due: Row[]): Row[] {
      if (visits.size === 0) return due;
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
