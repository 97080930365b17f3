import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { openSegments } from "../../src/lib/segments.ts";
import { account, type House, house, inbox, type ServerProcess } from "../faults/house.ts";
import { closing, faultsOf } from "../faults/load.ts";
import { rawMail } from "../support/mails.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { until } from "../support/until.ts";

const CLIENTS = 4;
const CALLERS = 2;
const MAILS_BEFORE = 60;
const IDLE_MS = 60_000;
/** Some go into the database, and most to the files beside it. */
const SIZES = [1_000, 20_000, 60_000, 200_000];

test("a backup made under load holds every mail and call that was acknowledged before it, byte for byte", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "mailwright-restored-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(elsewhere, { recursive: true, force: true }) };
  await using at = await house();
  const owner = await account(at, "ann@client.example");
  const archive = join(elsewhere, "backup.zip");
  const load = newLoad();
  {
    await using server = await at.start();
    const to = await inbox(server, owner);
    const running = work(load, server, { to, owner });
    await load.reached(MAILS_BEFORE);
    const before = { mails: new Set(load.mails.keys()), calls: new Set(load.calls) };
    const made = await at.cli("backup", archive, "--json");
    expect(made).toMatchObject({ code: 0, err: "" });
    const meanwhile = load.mails.size - before.mails.size;
    // Each client has a mail under way at any time, so that some are in the middle of it when the backup is made.
    await load.reached(before.mails.size + 1);
    load.stop();
    await running;
    console.log(`acknowledged before ${before.mails.size}, while the backup was made ${meanwhile}`);
    load.keep(before);
    // The older server goes on, and empties its queue, while the other one is tried.
    await using restored = await house({}, join(elsewhere, "data"));
    const told = await restored.cli("restore", archive, "--json");
    expect(told).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(told.out)).toMatchObject({
      restore_point: null,
      restored: { counts: { accounts: 1, inboxes: 1 } },
    });
    await expectAll(restored.dir, load);
    await using second = await restored.start();
    const listed = await fetch(`${second.http}/messages`, { headers: { "x-api-key": owner.api_key } });
    expect(listed.status).toBe(200);
    await untilAnswered(restored);
    second.kill("SIGTERM");
    expect(await second.exited).toBe(0);
    using database = closing(restored.database());
    await expectAll(restored.dir, load);
    // Calls have neither mail nor answer by mail, and some jobs come back for ever.
    database.db.exec("delete from messages where source = 'api'; delete from jobs");
    expect(faultsOf(database.db, new Set(load.mails.keys()))).toEqual([]);
  }
}, 120_000);

async function untilAnswered(at: House): Promise<void> {
  using database = closing(at.database());
  const left = database.db
    .prepare("select count(*) from jobs where kind in ('route_message', 'send_mail')")
    .pluck();
  const deadline = Date.now() + IDLE_MS;
  while (left.get() !== 0) {
    if (Date.now() > deadline) throw new Error(`${String(left.get())} are not done after ${IDLE_MS} ms`);
    await Bun.sleep(25);
  }
}

interface Load {
  /** What was acknowledged, by Message-ID. */
  mails: Map<string, Buffer>;
  /** Ids of messages. */
  calls: Set<string>;
  stopped: () => boolean;
  stop: () => void;
  reached: (count: number) => Promise<void>;
  /** Forgets all others. */
  keep: (some: { mails: Set<string>; calls: Set<string> }) => void;
}

function newLoad(): Load {
  const [mails, calls] = [new Map<string, Buffer>(), new Set<string>()];
  let stopped = false;
  return {
    mails,
    calls,
    stopped: () => stopped,
    stop: () => (stopped = true),
    async reached(count) {
      await until(() => !(mails.size < count || calls.size === 0));
    },
    keep(some) {
      for (const id of mails.keys()) if (!some.mails.has(id)) mails.delete(id);
      for (const id of calls) if (!some.calls.has(id)) calls.delete(id);
    },
  };
}

async function work(
  load: Load,
  server: ServerProcess,
  { to, owner }: { to: string; owner: { email: string; api_key: string } },
): Promise<void> {
  const deliver = async (): Promise<void> => {
    await using client = await smtpClient(server.smtp);
    await client.say("EHLO client.example");
    while (!load.stopped()) {
      const id = `${Bun.randomUUIDv7()}@client.example`;
      const size = SIZES[load.mails.size % SIZES.length] ?? 0;
      const raw = rawMail({
        from: owner.email,
        to,
        text: `${`${id} `.repeat(size / id.length)}\r\n`,
        headers: { "Message-ID": `<${id}>` },
      });
      if ((await client.deliver({ from: owner.email, to, raw })).startsWith("250")) load.mails.set(id, raw);
    }
  };
  const call = async (): Promise<void> => {
    while (!load.stopped()) {
      const response = await fetch(`${server.http}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": owner.api_key, "content-type": "application/json" },
        body: JSON.stringify({ instruction: "Say hello" }),
      });
      const { message_id } = (await response.json()) as { message_id?: string };
      if (message_id !== undefined) load.calls.add(message_id);
    }
  };
  await Promise.all([...Array.from({ length: CLIENTS }, deliver), ...Array.from({ length: CALLERS }, call)]);
}

/** Looks into the data folder itself: what is acknowledged is there, with its bytes, and the accounts add up. */
async function expectAll(dir: string, { mails, calls }: Load): Promise<void> {
  using opened = closing(new Sqlite(join(dir, "mailwright.db"), { readonly: true }));
  const { db } = opened;
  await using segments = await openSegments(join(dir, "mail"));
  const find = db.prepare(
    "select r.* from messages m join raw_mails r on r.id = m.raw_mail_id where m.rfc_message_id in (?, ?)",
  );
  let beside = 0;
  for (const [id, raw] of mails) {
    const row = find.get(id, `<${id}>`) as {
      bytes: Buffer | null;
      segment: number;
      segment_offset: number;
      size: number;
    };
    expect({ id, found: Boolean(row) }).toEqual({ id, found: true });
    const { segment, segment_offset: offset, size } = row;
    const stored = row.bytes ?? (await segments.read({ segment, offset, size }));
    expect(
      Buffer.from(stored ?? [])
        .subarray(-raw.byteLength)
        .equals(raw),
    ).toBe(true);
    if (row.bytes === null) beside += 1;
  }
  expect(beside).toBeGreaterThan(mails.size / 4);
  const known = new Set(db.prepare("select id from messages").pluck().all());
  expect([...calls].filter((id) => !known.has(id))).toEqual([]);
  const wrong = db.prepare(`select count(*) from (select balance, sum(amount) over
    (partition by user_id, period order by id) as total from ledger) where balance <> total`);
  expect(wrong.pluck().get()).toBe(0);
}
