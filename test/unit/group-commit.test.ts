import { describe, expect, test } from "bun:test";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { isStorageFault } from "../../src/db/storage-faults.ts";
import { openKysely } from "../../src/db/dialect.ts";
import {
  afterCommit,
  apart,
  type Db,
  groupCommit,
  unlessCommitted,
  type Write,
} from "../../src/db/group-commit.ts";
import { messageOf } from "../../src/errors.ts";
import type { Schema } from "../../src/db/schema.ts";
import { ownMs } from "../support/own-time.ts";

/** A database in memory that notes every statement it is given. */
function traced() {
  const trace: string[] = [];
  const sqlite = new Sqlite(":memory:", { verbose: (text) => void trace.push(String(text)) });
  sqlite.exec("create table notes (id integer primary key, text text, parent integer references notes (id))");
  sqlite.pragma("foreign_keys = on");
  const db = openKysely<Schema>(sqlite);
  const count = (statement: string) => trace.filter((text) => text === statement).length;
  const texts = () => sqlite.prepare("select text from notes order by id").pluck().all();
  return {
    sqlite,
    db,
    write: groupCommit(db),
    trace,
    count,
    texts,
    [Symbol.asyncDispose]: () => db.destroy(),
  };
}

const insert = (write: Write, text: string) =>
  write(async (tx) => {
    await sql`insert into notes (text) values (${text})`.execute(tx);
    return text;
  });

/** In one batch with whatever else is asked for in the same tick. */
function failing(write: Write, error: Error): Promise<void> {
  return write(async (tx) => {
    await sql`insert into notes (text) values ('never seen')`.execute(tx);
    throw error;
  });
}

describe("group commit", () => {
  test("joins the operations of a tick into one commit and answers each with its own value", async () => {
    await using t = traced();
    const asked = Array.from({ length: 100 }, (_, index) => insert(t.write, `note ${index}`));
    expect(await Promise.all(asked)).toEqual(asked.map((_, index) => `note ${index}`));
    expect(t.count("commit")).toBe(1);
    expect(t.count("begin immediate")).toBe(1);
  });

  test("waits another turn where one brought more, but no longer, and not for one alone", async () => {
    await using t = traced();
    const asked: Promise<string>[] = [];
    const commits: number[] = [];
    const ask = (text: string) => asked.push(insert(t.write, text));
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    ask("alone");
    await asked[0];
    expect(t.count("commit")).toBe(1);
    // Two in each turn.
    for (let index = 0; index < 40; index += 1) {
      ask(`${index}`);
      ask(`${index} too`);
      await turn();
      commits.push(t.count("commit"));
    }
    await Promise.all(asked);
    expect(t.texts()).toHaveLength(81);
    const total = t.count("commit") - 1;
    expect(total).toBeLessThanOrEqual(21);
    // The first of them did not wait for the last to be asked for.
    expect(commits[10]).toBeGreaterThan(2);
  });

  test("runs operations in the order they were asked for, over several commits", async () => {
    await using t = traced();
    const wanted = Array.from({ length: 600 }, (_, index) => `${index}`);
    await Promise.all(wanted.map((text) => insert(t.write, text)));
    expect(t.texts()).toEqual(wanted);
    expect(t.count("commit")).toBe(3);
  });

  test("undoes an operation that throws, and no other", async () => {
    await using t = traced();
    const mistake = new Error("mistake");
    const answers = await Promise.allSettled([
      insert(t.write, "before"),
      failing(t.write, mistake),
      insert(t.write, "after"),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(answers[1]).toEqual({ status: "rejected", reason: mistake });
    expect(t.texts()).toEqual(["before", "after"]);
    expect(t.count("commit")).toBe(1);
  });

  test("takes back what goes with an operation that is undone, before the next one begins, and with no other", async () => {
    await using t = traced();
    const order: string[] = [];
    const note = (text: string, fault?: Error) =>
      t.write(async (tx) => {
        order.push(text);
        unlessCommitted(tx, () => void order.push(`not ${text}`));
        unlessCommitted(tx, () => void order.push(`first not ${text}`));
        if (fault) throw fault;
      });
    await Promise.allSettled([note("one"), note("two", new Error("no")), note("three")]);
    expect(order).toEqual(["one", "two", "first not two", "not two", "three"]);
    await Promise.allSettled([note("alone", new Error("no"))]);
    expect(order.slice(5)).toEqual(["alone", "first not alone", "not alone"]);
  });

  test("undoes a part that fails, with what goes with it, and commits the rest", async () => {
    await using t = traced();
    const order: string[] = [];
    const note = (tx: Db, text: string) => {
      afterCommit(tx, () => void order.push(text));
      unlessCommitted(tx, () => void order.push(`not ${text}`));
      return sql`insert into notes (text) values (${text})`.execute(tx);
    };
    const failure = await t.write(async (tx) => {
      await note(tx, "whole");
      return apart(tx, async () => {
        await note(tx, "part");
        throw new Error("damaged");
      });
    });
    expect(failure?.message).toBe("damaged");
    expect(t.texts()).toEqual(["whole"]);
    await Bun.sleep(0);
    expect(order).toEqual(["not part", "whole"]);
    const full = Object.assign(new Error("full"), { code: "SQLITE_FULL" });
    expect(await t.write((tx) => apart(tx, () => Promise.reject(full))).catch(messageOf)).toBe("full");
  });

  test("takes back what goes with all operations of a commit that fails", async () => {
    await using t = traced();
    const order: string[] = [];
    const beforeCommit = () => Promise.reject(new Error("no disk"));
    const write = groupCommit(t.db, { beforeCommit });
    const note = (text: string) => write(async (tx) => unlessCommitted(tx, () => void order.push(text)));
    const ends = await Promise.allSettled([note("one"), note("two")]);
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(order).toEqual(["two", "one"]);
  });

  test("tells nobody anything before the commit", async () => {
    await using t = traced();
    const order: string[] = [];
    const note = (text: string) => () => void order.push(`${text}, commits: ${t.count("commit")}`);
    await Promise.all([
      insert(t.write, "one").then(note("first answer")),
      failing(t.write, new Error("no")).catch(note("failure")),
      insert(t.write, "two").then(note("last answer")),
    ]);
    expect(order).toEqual(["first answer, commits: 1", "failure, commits: 1", "last answer, commits: 1"]);
  });

  test("does afterwards what the operations that were committed asked for, and nothing for the others", async () => {
    await using t = traced();
    const done: string[] = [];
    const asking = (name: string, fails: boolean) =>
      t.write(async (tx) => {
        await sql`insert into notes (text) values (${name})`.execute(tx);
        afterCommit(tx, () => done.push(`${name}, ${t.count("commit")} commit`));
        if (fails) throw new Error(name);
      });
    await Promise.allSettled([asking("one", false), asking("two", true), asking("three", false)]);
    await asking("alone", true).catch(() => undefined);
    expect(done).toEqual(["one, 1 commit", "three, 1 commit"]);
    afterCommit(t.db, () => done.push("at once"));
    expect(done.at(-1)).toBe("at once");
  });

  test("rejects all of a batch whose commit fails, stores none of it, and goes on", async () => {
    await using t = traced();
    const orphan = t.write(async (tx) => {
      await sql`pragma defer_foreign_keys = on`.execute(tx);
      await sql`insert into notes (text, parent) values ('orphan', 99)`.execute(tx);
    });
    const answers = await Promise.allSettled([insert(t.write, "bystander"), orphan]);
    for (const answer of answers)
      expect(answer).toMatchObject({ status: "rejected", reason: { code: "SQLITE_CONSTRAINT_FOREIGNKEY" } });
    expect(t.texts()).toEqual([]);
    expect(await insert(t.write, "later")).toBe("later");
    expect(t.texts()).toEqual(["later"]);
  });

  test("tells everybody of a batch that the disk is full, and goes on when it is not any more", async () => {
    await using t = traced();
    t.sqlite.pragma("max_page_count = 20");
    const answers = await Promise.allSettled([
      insert(t.write, "small"),
      insert(t.write, "x".repeat(500_000)),
      insert(t.write, "small too"),
    ]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: "rejected", reason: { code: "SQLITE_FULL" } });
      expect(isStorageFault((answer as PromiseRejectedResult).reason)).toBe(true);
    }
    expect(t.sqlite.inTransaction).toBe(false);
    t.sqlite.pragma("max_page_count = 10000");
    await insert(t.write, "again");
    expect(t.texts()).toEqual(["again"]);
  });

  test("gives nobody its transaction for later, and one inside of it is refused", async () => {
    await using t = traced();
    let kept: Db | undefined;
    const nested = t.write(async (tx) => {
      kept = tx;
      await tx.transaction().execute(async () => undefined);
    });
    await expect(nested).rejects.toThrow("for a Transaction is not supported");
    await expect(sql`insert into notes (text) values ('late')`.execute(kept as Db)).rejects.toThrow(
      "Transaction is already rolled back",
    );
    await insert(t.write, "next");
    expect(t.texts()).toEqual(["next"]);
  });

  test("lets no reader see what is not committed yet", async () => {
    await using t = traced();
    const middle = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const written = t.write(async (tx) => {
      await sql`insert into notes (text) values ('half')`.execute(tx);
      middle.resolve();
      await end.promise;
      throw new Error("undone");
    });
    await middle.promise;
    const seen = sql`select text from notes`.execute(t.db);
    end.resolve();
    expect(await written.catch(messageOf)).toBe("undone");
    expect((await seen).rows).toEqual([]);
  });

  test("gives timers and sockets a turn between two commits, however many follow each other", async () => {
    await using t = traced();
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 0);
    const until = ownMs() + 60;
    while (ownMs() < until) await insert(t.write, "again and again");
    clearInterval(ticking);
    expect(turns).toBeGreaterThan(5);
  });
});

describe("statements", () => {
  test("writes with RETURNING give their rows and happen once", async () => {
    await using t = traced();
    const add = () => sql<{ id: number }>`insert into notes (text) values ('r') returning id`.execute(t.db);
    expect((await add()).rows).toEqual([{ id: 1 }]);
    expect((await add()).rows).toEqual([{ id: 2 }]);
    expect(t.texts()).toEqual(["r", "r"]);
  });

  test("a schema that changes later is seen by a statement that was prepared before", async () => {
    await using t = traced();
    const all = () => sql<Record<string, unknown>>`select * from notes`.execute(t.db);
    await insert(t.write, "kept");
    expect(Object.keys((await all()).rows[0] ?? {})).toEqual(["id", "text", "parent"]);
    await sql`alter table notes add column colour text default 'red'`.execute(t.db);
    expect((await all()).rows).toEqual([{ id: 1, text: "kept", parent: null, colour: "red" }]);
  });
});
