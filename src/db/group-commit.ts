import { CompiledQuery, type Kysely } from "kysely";
import { keepLogFields } from "../lib/log.ts";
import type { Schema } from "./schema.ts";

export type Db = Kysely<Schema>;

/**
 * Runs `operation` in a transaction and resolves once it is committed and synced. With `promises` of false its commit need not be
 * synced: for what nobody has been promised yet, and that a power cut may undo. The next commit that promises something
 * syncs both.
 */
export type Write = <T>(operation: (tx: Db) => Promise<T>, options?: { promises?: boolean }) => Promise<T>;

/** Operations that may share one commit; more wait for the next. */
const MAX_OPERATIONS = 256;

interface Hooks {
  /** Before each transaction: whether one of its operations promises something. */
  begin?: (promises: boolean) => void;
  /** A transaction was not committed. */
  failed?: (error: unknown) => void;
  beforeCommit?: () => Promise<void>;
  committed?: (ms: number) => void;
}

interface Waiting {
  operation: (tx: Db) => Promise<unknown>;
  promises: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Group commit: operations that are ready in the same tick share one transaction, and so one sync. Each runs
 * in its own savepoint: one that throws is undone alone. Nobody gets an answer before the commit; `beforeCommit`
 * syncs what the rows point to outside of the database, `committed` hears how long the commit itself took.
 */
export function groupCommit(
  db: Db,
  { beforeCommit = async () => {}, committed = () => {}, begin = () => {}, failed = () => {} }: Hooks = {},
): Write {
  const waiting: Waiting[] = [];
  let scheduled = false;

  const flush = async (): Promise<void> => {
    await commitBatch(db, waiting.splice(0, MAX_OPERATIONS), { beforeCommit, committed, begin, failed });
    scheduled = false;
    schedule();
  };
  /** Always a new tick: sockets get their turn between two commits, and what they bring joins the next. */
  const schedule = (): void => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    setImmediate(flushOrWait, waiting.length);
  };
  /** Where more have come in that turn, the rest of them is one turn away; one alone has nobody to wait for. */
  const flushOrWait = (before: number): void => {
    if (waiting.length > before) setImmediate(() => void flush());
    else void flush();
  };

  return <T>(operation: (tx: Db) => Promise<T>, { promises = true }: { promises?: boolean } = {}) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({
        operation: keepLogFields(operation),
        promises,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      schedule();
    });
}

/** What the operations of a transaction that is open want done once it is committed, and what if they are undone. */
interface Ends {
  acts: (() => void)[];
  regrets: (() => void)[];
}

const ends = new WeakMap<Db, Ends>();

/** Has something done once `tx` is committed; never, if that or the operation fails. */
export function afterCommit(tx: Db, act: () => void): void {
  const open = ends.get(tx);
  // Without a transaction all is committed already.
  if (open) open.acts.push(act);
  else act();
}

/** Has something taken back if the operation fails, or `tx` is not committed: before the next operation begins. */
export function unlessCommitted(tx: Db, regret: () => void): void {
  ends.get(tx)?.regrets.push(regret);
}

const SAVEPOINT = CompiledQuery.raw("savepoint operation");
const ROLLBACK_TO = CompiledQuery.raw("rollback to operation");
const RELEASE = CompiledQuery.raw("release operation");

async function commitBatch(
  db: Db,
  batch: Waiting[],
  { beforeCommit, committed, begin, failed }: Required<Hooks>,
): Promise<void> {
  const answers: (() => void)[] = [];
  const open: Ends = { acts: [], regrets: [] };
  const { acts, regrets } = open;
  // One alone needs no savepoint: undoing it undoes the whole transaction.
  const alone = batch.length === 1;
  let began_ms = 0;
  try {
    begin(batch.some(({ promises }) => promises));
    await db.transaction().execute(async (tx) => {
      ends.set(tx, open);
      for (const { operation, resolve, reject } of batch) {
        if (!alone) await tx.executeQuery(SAVEPOINT);
        const before = { acts: acts.length, regrets: regrets.length };
        try {
          const value = await operation(tx);
          answers.push(() => resolve(value));
        } catch (error) {
          if (alone) throw error;
          await undo(tx, error);
          acts.length = before.acts;
          takeBack(regrets, before.regrets);
          answers.push(() => reject(error));
        }
        if (!alone) await tx.executeQuery(RELEASE);
      }
      await beforeCommit();
      began_ms = performance.now();
    });
    committed(performance.now() - began_ms);
  } catch (error) {
    failed(error);
    takeBack(regrets, 0);
    for (const { reject } of batch) reject(error);
    return;
  }
  for (const answer of answers) answer();
  // Apart, so that a fault in one of them does not hold up the commits to come.
  for (const act of acts) queueMicrotask(act);
}

/** The last first: each finds what it changed as it left it. */
function takeBack(regrets: (() => void)[], from: number): void {
  for (const regret of regrets.splice(from).toReversed()) regret();
}

/** A full disk makes SQLite undo the whole transaction by itself; then `cause` is what everybody has to hear. */
async function undo(tx: Db, cause: unknown): Promise<void> {
  try {
    await tx.executeQuery(ROLLBACK_TO);
  } catch {
    throw cause;
  }
}
