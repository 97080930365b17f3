import { type Kysely, sql } from "kysely";

const TABLES = ["raw_mails", "attachments"] as const;

/** Whose the bytes in the segments are, and what of them is gone. */
export const segmentChecks = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of TABLES) {
      await db.schema.alterTable(table).addColumn("checksum", "bigint").execute();
      await db.schema.alterTable(table).addColumn("lost_at", "bigint").execute();
      const [name, places, lost] = [table, `${table}_segment`, `${table}_lost_at`].map((one) => sql.id(one));
      await sql`create index ${places} on ${name} (segment, segment_offset, size)
        where segment is not null`.execute(db);
      await sql`create index ${lost} on ${name} (lost_at) where lost_at is not null`.execute(db);
    }
    await markOverwritten(db);
  },
};

/** A checksum that no bytes have. */
const NONE = -1;

interface Placed {
  name: string;
  id: string;
  segment: number;
  start: number;
  end: number;
}

const PLACED = sql`select 'raw_mails' as name, id, segment, segment_offset as start, segment_offset + size as "end"
    from raw_mails where segment is not null
  union all
  select 'attachments', id, segment, segment_offset, segment_offset + size from attachments where segment is not null`;

/** Earlier versions wrote over what older rows named where a file had become shorter: the younger row has the bytes. */
async function markOverwritten(db: Kysely<unknown>): Promise<void> {
  const { rows: second } = await sql<Placed>`
    select name, id, segment, start, "end" from (
      select *, max("end") over (
        partition by segment order by start, "end" rows between unbounded preceding and 1 preceding
      ) as before
      from (${PLACED})
    ) where start < before`.execute(db);
  for (const one of second) {
    const { rows } = await sql<Placed>`
      select * from (${PLACED}) where segment = ${one.segment} and start < ${one.end} and "end" > ${one.start}`.execute(
      db,
    );
    for (const other of rows) {
      const { name, id } = other.id < one.id ? other : one;
      if (other.id !== one.id)
        await sql`update ${sql.table(name)} set lost_at = unixepoch(), checksum = ${NONE} where id = ${id}`.execute(
          db,
        );
    }
  }
}
