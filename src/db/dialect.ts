import type Sqlite from "better-sqlite3";
import {
  CompiledQuery,
  type ConnectionProvider,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type DialectAdapter,
  type Driver,
  Kysely,
  type QueryCompiler,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { createRowMemory, type Effect, effectOf } from "./row-memory.ts";
import { shareReads, type SharedRead } from "./shared-read.ts";
import { codeOf } from "../errors.ts";

/** How many distinct SQL texts stay prepared. The code has fewer; the limit only bounds a mistake. */
const MAX_STATEMENTS = 500;
/** How long a transaction waits for another process (a command line, a shell) that holds the write lock. */
const LOCK_WAIT_MS = 5_000;
const LOCK_AGAIN_MS = 20;

/**
 * Kysely over one better-sqlite3 connection. Unlike Kysely's own dialect it keeps prepared statements
 * (preparing costs more than running them) and takes the write lock when a transaction begins, so that a
 * transaction never fails half-way because another process wrote first.
 */
export function openKysely<Schema>(
  sqlite: Sqlite.Database,
  { reads = shareReads(sqlite), onError = () => undefined, onWrite = () => undefined }: Partial<Hooks> = {},
): Kysely<Schema> {
  const connection = cachedConnection(sqlite, { reads, onError, onWrite });
  const dialect = sqliteDialect(sqlite, connection);
  const plain = new Kysely<Schema>({ dialect }).getExecutor();
  const parts = { compiler: dialect.createQueryCompiler(), adapter: plain.adapter, connection };
  const executor = new DirectExecutor(parts, plain, () => !reads.isOpen() && sqlite.inTransaction);
  return new Kysely({ config: { dialect }, dialect, driver: dialect.createDriver(), executor });
}

interface Hooks {
  reads: SharedRead;
  /** Receives every error of the database, with the statement that it came of. */
  onError: (error: unknown, statement: string) => void;
  /** Called for every statement that may change something. */
  onWrite: () => void;
}

interface Parts {
  compiler: QueryCompiler;
  adapter: DialectAdapter;
  connection: DatabaseConnection;
}

interface CachedConnection extends DatabaseConnection {
  /** Begins a transaction once no other process has one. This thread continues with reads and other work until then. */
  begin: () => Promise<void>;
}

/**
 * Runs a query without first asking for the connection as Kysely's own executor does: there is only one, and only a
 * transaction reserves it.
 */
class DirectExecutor extends DefaultQueryExecutor {
  readonly #parts: Parts;
  readonly #isKept: () => boolean;

  constructor(parts: Parts, provider: ConnectionProvider, isKept: () => boolean) {
    super(parts.compiler, parts.adapter, provider);
    this.#parts = parts;
    this.#isKept = isKept;
  }

  override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#isKept() ? super.executeQuery(query) : this.#parts.connection.executeQuery<R>(query);
  }

  /** Returns the executor of a transaction, which already has the connection. */
  override withConnectionProvider(provider: ConnectionProvider): DirectExecutor {
    return new DirectExecutor(this.#parts, provider, () => false);
  }
}

function sqliteDialect(sqlite: Sqlite.Database, connection: CachedConnection): Dialect {
  const run = (text: string) => connection.executeQuery(CompiledQuery.raw(text)).then(() => undefined);
  const driver: Driver = {
    init: async () => {},
    acquireConnection: async () => connection,
    beginTransaction: connection.begin,
    commitTransaction: () => run("commit"),
    rollbackTransaction: async () => {
      // A full disk makes SQLite roll back by itself; a second rollback would hide the real error.
      if (sqlite.inTransaction) await run("rollback");
    },
    releaseConnection: async () => {},
    destroy: async () => void sqlite.close(),
  };
  return {
    createAdapter: () => new TransactionalAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new FixedPlanCompiler(),
  };
}

/** SQLite undoes schema changes too: a migration that is cut off leaves nothing behind. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/**
 * Writes parameters as `+?`. SQLite's planner looks at the value of a bare `?` after LIMIT or beside a column without
 * an index and plans the statement again at every run, which costs ten times the run. Behind a `+`, which changes
 * nothing, it does not look.
 */
class FixedPlanCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return "+?";
  }
}

/** A query whose rows are remembered, see `createRowMemory`. */
export interface RememberedQuery<Row = unknown> extends CompiledQuery<Row> {
  remembered?: boolean;
}

interface Prepared {
  statement: Sqlite.Statement;
  effect: Effect;
  writes: boolean;
}

const BEGIN = CompiledQuery.raw("begin immediate");

function statementCache(sqlite: Sqlite.Database): (text: string) => Prepared {
  const statements = new Map<string, Prepared>();
  return (text) => {
    const known = statements.get(text);
    if (known) return known;
    if (statements.size >= MAX_STATEMENTS) statements.clear();
    const statement = sqlite.prepare(text);
    const effect = effectOf(text, statement.readonly);
    const made = { statement, effect, writes: !statement.readonly && effect !== "begins" };
    statements.set(text, made);
    return made;
  };
}

function cachedConnection(sqlite: Sqlite.Database, { reads, onError, onWrite }: Hooks): CachedConnection {
  const memory = createRowMemory(sqlite);
  const prepared = statementCache(sqlite);
  const beginRead = (): void => {
    if (reads.begin()) memory.note("begins");
  };
  const run = ({ sql, parameters }: CompiledQuery): QueryResult<unknown> => {
    const { statement, effect, writes } = prepared(sql);
    memory.note(effect);
    if (writes) onWrite();
    if (sql.startsWith("select ")) beginRead();
    else reads.end();
    if (statement.reader) return { rows: statement.all(...parameters) };
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  };
  /** A full disk makes SQLite undo the whole transaction without a statement that would clear the remembered rows. */
  const failed = (error: unknown, statement: string): void => {
    memory.note("forgets");
    onError(error, statement);
  };
  return {
    async begin() {
      const until = performance.now() + LOCK_WAIT_MS;
      for (;;) {
        try {
          run(BEGIN);
          return;
        } catch (error) {
          if (isBusy(error) && performance.now() < until) {
            await Bun.sleep(LOCK_AGAIN_MS);
            continue;
          }
          failed(error, BEGIN.sql);
          throw error;
        }
      }
    },
    async executeQuery<R>(query: RememberedQuery): Promise<QueryResult<R>> {
      try {
        if (query.remembered) beginRead();
        const result = query.remembered ? { rows: memory.rows(query, () => run(query).rows) } : run(query);
        return result as QueryResult<R>;
      } catch (error) {
        failed(error, query.sql);
        throw error;
      }
    },
    async *streamQuery<R>({ sql, parameters }: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
      for (const row of sqlite.prepare(sql).iterate(...parameters)) yield { rows: [row as R] };
    },
  };
}

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}
