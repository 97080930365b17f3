import { CompiledQuery, type Kysely } from "kysely";
import { keepLogFields } from "../lib/log.ts";
import type { Schema } from "./schema.ts";
import { isStorageFault } from "./storage-faults.ts";

export type Db = Kysely<Schema>;

export interface WriteOptions {
  /**
   * False: the commit may be left unsynced, so that a power cut can undo it, for changes that nobody has been told of yet. The
   * next commit that promises something syncs both.
   */
  promises?: boolean;
  /** What its rows may name (see `storeBytes`). Long ones are on their disk before the transaction begins. */
  stores?: Uint8Array[];
}

/** Runs `operation` in a transaction and resolves once it is committed and synced. */
export type Write = <T>(operation: (tx: Db) => Promise<T>, options?: WriteOptions) => Promise<T>;

/** The largest number of operations that share one commit; further ones wait for the next. */
const MAX_OPERATIONS = 256;

interface Hooks {
  /** Called before each transaction, with whether one of its operations promises something. */
  begin?: (promises: boolean) => void;
  /** Called when a transaction was not committed. */
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
 * Commits in groups: operations that are ready in the same tick share one transaction, and so one sync. Each runs in
 * its own savepoint, so that one that throws is undone alone. Nobody gets an answer before the commit. `beforeCommit`
 * may refuse it; `committed` receives how long the commit itself took in milliseconds.
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
  /** Commits always in a new tick: sockets are served between two commits, and what they bring joins the next one. */
  const schedule = (): void => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    setImmediate(flushOrWait, waiting.length);
  };
  /**
   * If more operations arrived during this turn of the event loop, waits one turn for the rest of them. A single one
   * commits at once.
   */
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

/**
 * Callbacks of the operations in an open transaction: `acts` run after the commit, `regrets` when an operation or the
 * whole transaction is undone.
 */
interface Ends {
  acts: (() => void)[];
  regrets: (() => void)[];
}

const ends = new WeakMap<Db, Ends>();

/** Calls `act` once `tx` is committed; never if the operation or the commit fails. */
export function afterCommit(tx: Db, act: () => void): void {
  const open = ends.get(tx);
  // Outside of a transaction every statement is committed already.
  if (open) open.acts.push(act);
  else act();
}

/** Calls `regret` if the operation fails or `tx` is not committed, before the next operation begins. */
export function unlessCommitted(tx: Db, regret: () => void): void {
  ends.get(tx)?.regrets.push(regret);
}

const SAVEPOINT = CompiledQuery.raw("savepoint operation");
const ROLLBACK_TO = CompiledQuery.raw("rollback to operation");
const RELEASE = CompiledQuery.raw("release operation");

const PART = CompiledQuery.raw("savepoint part");
const ROLLBACK_TO_PART = CompiledQuery.raw("rollback to part");
const RELEASE_PART = CompiledQuery.raw("release part");

async function commitBatch(
  db: Db,
  batch: Waiting[],
  { beforeCommit, committed, begin, failed }: Required<Hooks>,
): Promise<void> {
  const answers: (() => void)[] = [];
  const open: Ends = { acts: [], regrets: [] };
  const { acts, regrets } = open;
  // A single operation needs no savepoint: undoing it undoes the whole transaction.
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
  // Each in a microtask of its own, so that an exception in one does not hold up the next commits.
  for (const act of acts) queueMicrotask(act);
}

/**
 * Runs a part of an operation without which the rest is worth its commit. Where a damaged row keeps the part from being
 * written, that part alone is undone, and its error returned; a fault of the disk is one of the whole operation.
 */
export async function apart(tx: Db, part: () => Promise<unknown>): Promise<Error | undefined> {
  const open = ends.get(tx);
  const before = { acts: open?.acts.length ?? 0, regrets: open?.regrets.length ?? 0 };
  await tx.executeQuery(PART);
  let failure: Error | undefined;
  try {
    await part();
  } catch (error) {
    if (isStorageFault(error)) throw error;
    failure = error instanceof Error ? error : new Error(String(error));
    await tx.executeQuery(ROLLBACK_TO_PART);
    if (open) open.acts.length = before.acts;
    if (open) takeBack(open.regrets, before.regrets);
  }
  await tx.executeQuery(RELEASE_PART);
  return failure;
}

/** Runs regrets in reverse order, so that each finds the state that it left. */
function takeBack(regrets: (() => void)[], from: number): void {
  for (const regret of regrets.splice(from).toReversed()) regret();
}

/**
 * Undoes one operation. If SQLite has already undone the whole transaction because the disk is full, throws `cause`,
 * which then holds for every operation.
 */
async function undo(tx: Db, cause: unknown): Promise<void> {
  try {
    await tx.executeQuery(ROLLBACK_TO);
  } catch {
    throw cause;
  }
}
