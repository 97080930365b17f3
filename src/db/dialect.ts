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

/** Distinct SQL texts kept prepared. The code has fewer; the cap only bounds a mistake. */
const MAX_STATEMENTS = 500;

/**
 * Kysely over one better-sqlite3 connection. Unlike Kysely's own dialect it keeps prepared statements
 * (preparing costs more than running them) and takes the write lock when a transaction begins, so that a
 * transaction never fails half-way because another process wrote first.
 */
export function openKysely<Schema>(sqlite: Sqlite.Database): Kysely<Schema> {
  const connection = cachedConnection(sqlite);
  const dialect = sqliteDialect(sqlite, connection);
  const plain = new Kysely<Schema>({ dialect }).getExecutor();
  const parts = { compiler: dialect.createQueryCompiler(), adapter: plain.adapter, connection };
  const executor = new DefaultQueryExecutor(parts.compiler, parts.adapter, plain);
  executor.withConnectionProvider = (provider) => new HeldExecutor(parts, provider);
  return new Kysely({ config: { dialect }, dialect, driver: dialect.createDriver(), executor });
}

interface Parts {
  compiler: QueryCompiler;
  adapter: DialectAdapter;
  connection: DatabaseConnection;
}

/** In a transaction the connection is held already: a query need not ask for it as Kysely's own executor does. */
class HeldExecutor extends DefaultQueryExecutor {
  readonly #parts: Parts;

  constructor(parts: Parts, provider: ConnectionProvider) {
    super(parts.compiler, parts.adapter, provider);
    this.#parts = parts;
  }

  override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#parts.connection.executeQuery<R>(query);
  }

  override withConnectionProvider(provider: ConnectionProvider): HeldExecutor {
    return new HeldExecutor(this.#parts, provider);
  }
}

function sqliteDialect(sqlite: Sqlite.Database, connection: DatabaseConnection): Dialect {
  const run = (text: string) => connection.executeQuery(CompiledQuery.raw(text)).then(() => undefined);
  const driver: Driver = {
    init: async () => {},
    acquireConnection: async () => connection,
    beginTransaction: () => run("begin immediate"),
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
 * The planner looks at the value of a bare `?`, after a LIMIT or beside a column it has no index for, and then plans
 * the statement anew at every run, which costs ten times the run. Behind a `+`, which changes nothing, it does not look.
 */
class FixedPlanCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return "+?";
  }
}

function cachedConnection(sqlite: Sqlite.Database): DatabaseConnection {
  const statements = new Map<string, Sqlite.Statement>();
  const prepared = (text: string): Sqlite.Statement => {
    const known = statements.get(text);
    if (known) return known;
    if (statements.size >= MAX_STATEMENTS) statements.clear();
    const statement = sqlite.prepare(text);
    statements.set(text, statement);
    return statement;
  };
  return {
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      const statement = prepared(sql);
      if (statement.reader) return { rows: statement.all(...parameters) as R[] };
      const { changes, lastInsertRowid } = statement.run(...parameters);
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    },
    async *streamQuery<R>({ sql, parameters }: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
      for (const row of sqlite.prepare(sql).iterate(...parameters)) yield { rows: [row as R] };
    },
  };
}
