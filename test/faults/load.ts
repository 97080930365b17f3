import type Sqlite from "better-sqlite3";
import { rawMail } from "../support/mails.ts";
import { smtpClient } from "../support/smtp-client.ts";
import type { House } from "./house.ts";

/** Mails one client sends in one session. */
const MAILS_PER_SESSION = 5;
const RETRY_MS = 20;
/** Longer than anything here takes on a busy machine. */
const PATIENCE_MS = 30_000;

export interface Load {
  /** Message-IDs that were answered with 250. */
  acknowledged: Set<string>;
  /** Refusals of a whole mail, such as "451 4.3.0 …". */
  refusals: string[];
  /** Message-IDs that were tried at least once. */
  tried: Set<string>;
  /** Ends the load; what is under way is given up. */
  stop(): Promise<void>;
  /** Resolves once so many mails have been acknowledged. */
  reached(count: number): Promise<void>;
  /** Resolves once so many mails have been refused. */
  refused(count: number): Promise<void>;
}

interface LoadOptions {
  /** Where the server is now; undefined while it is down. */
  server: () => { host: string; port: number } | undefined;
  to: string[];
  from: string[];
  clients?: number;
  /** Between two mails of a client. */
  pause_ms?: number;
  bytes?: number;
}

/** Clients that deliver mail after mail and, like a real mail server, offer each one again until it is taken. */
export function startLoad({ server, to, from, clients = 6, pause_ms = 5, bytes = 400 }: LoadOptions): Load {
  const load = { acknowledged: new Set<string>(), refusals: [] as string[], tried: new Set<string>() };
  const waiting: { isMet: () => boolean; resolve: () => void }[] = [];
  const ending = new AbortController();
  const { signal } = ending;
  let made = 0;

  const next = () => {
    made += 1;
    const id = `load-${made}-${crypto.randomUUID()}@client.example`;
    return { id, from: from[made % from.length] ?? "", to: to[made % to.length] ?? "" };
  };
  const doing: string[] = [];
  const session = async (mails: ReturnType<typeof next>[], who: number): Promise<void> => {
    const address = server();
    if (!address) return;
    doing[who] = `connecting to port ${address.port}`;
    await using client = await smtpClient(address);
    doing[who] = `in a session on port ${address.port}`;
    await client.say("EHLO client.example");
    while (mails[0] && !signal.aborted) {
      const [mail] = mails;
      load.tried.add(mail.id);
      const reply = await client.deliver({ from: mail.from, to: mail.to, raw: mailOf(mail, bytes) });
      if (reply === "") return;
      const isTaken = reply.startsWith("250");
      if (isTaken) load.acknowledged.add(mail.id);
      else load.refusals.push(reply);
      for (const waiter of waiting) if (waiter.isMet()) waiter.resolve();
      if (!isTaken) return;
      mails.shift();
      await Bun.sleep(pause_ms);
    }
  };
  const run = async (who: number): Promise<void> => {
    let mails: ReturnType<typeof next>[] = [];
    while (!signal.aborted) {
      if (mails.length === 0) mails = Array.from({ length: MAILS_PER_SESSION }, next);
      // A connection that breaks is what this is all about: the mail is offered again.
      await session(mails, who).catch(() => undefined);
      doing[who] = "nothing";
      if (mails.length > 0) await Bun.sleep(RETRY_MS);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, (_, who) => run(who)));
  const until = (isMet: () => boolean, what: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push({ isMet, resolve });
    if (isMet()) resolve();
    return within(PATIENCE_MS, promise, () => `${what}: ${doing.join(", ")}`);
  };
  return {
    ...load,
    async stop() {
      ending.abort();
      await within(PATIENCE_MS, running, () => `every client to stop: ${doing.join(", ")}`);
    },
    reached: (count) => until(() => load.acknowledged.size >= count, `${count} mails to be taken`),
    refused: (count) => until(() => load.refusals.length >= count, `${count} mails to be refused`),
  };
}

function mailOf(mail: { id: string; from: string; to: string }, bytes: number): Buffer {
  return rawMail({
    from: `Client <${mail.from}>`,
    to: mail.to,
    subject: `Load ${mail.id}`,
    text: `Please sum up ${mail.id}.\r\n${"word ".repeat(bytes / 5)}`,
    headers: { "Message-ID": `<${mail.id}>` },
  });
}

/** Everything that is wrong about what a stopped server kept, in words; empty when every promise was held. */
export function faultsOf(database: Sqlite.Database, acknowledged: Set<string>): string[] {
  const rows = <T>(text: string) => database.prepare(text).all() as T[];
  const one = (text: string) => database.prepare(text).pluck().get() as number;
  const stored = new Map<string, number>();
  for (const { id } of rows<{ id: string }>("select rfc_message_id as id from messages"))
    stored.set(bare(id), (stored.get(bare(id)) ?? 0) + 1);
  const lost = [...acknowledged].filter((id) => !stored.has(id));
  const doubled = [...stored].filter(([, count]) => count > 1);
  const problems: [string, number][] = [
    ["acknowledged mails lost", lost.length],
    ["mails doubled", doubled.length],
    ["messages not done", one("select count(*) from messages where state <> 'done'")],
    ["jobs left over", one(`select count(*) from jobs where status = 'dead' or ${WORK}`)],
    [
      "messages without exactly one reply",
      one(
        `select count(*) from messages m
         where (select count(*) from outgoing_mails o where o.message_id = m.id and o.kind = 'reply') <> 1`,
      ),
    ],
    ["replies not sent", one("select count(*) from outgoing_mails where status <> 'sent'")],
    [
      "messages without exactly one reserve and one settlement",
      one(
        `select count(*) from messages m
         where (select group_concat(kind, ' ') from (select kind from ledger l where l.message_id = m.id order by id))
           is not 'reserve settle'`,
      ),
    ],
    [
      "ledger rows whose balance is not the sum so far",
      one(
        `select count(*) from (select balance, sum(amount) over (partition by user_id, period order by id) as total
         from ledger) where balance <> total`,
      ),
    ],
    [
      "raw mails that belong to no message",
      one("select count(*) from raw_mails where id not in (select raw_mail_id from messages)"),
    ],
    ["messages without their raw mail", one("select count(*) from messages where raw_mail_id is null")],
  ];
  const check = database.pragma("integrity_check", { simple: true });
  return [
    ...problems.filter(([, count]) => count > 0).map(([problem, count]) => `${count} ${problem}`),
    ...(check === "ok" ? [] : [`integrity check: ${String(check)}`]),
  ];
}

/** What runs, is due, or failed and waits for its time. What comes back by the clock is none: it always waits. */
const WORK = "status = 'running' or (status = 'pending' and (run_at <= unixepoch() or failures > 0))";

/** Long enough for a job that met a failing disk, which is tried again a quarter of a minute later, on a busy machine. */
const IDLE_MS = 45_000;

/** Resolves when the server has nothing left to do. */
export async function untilIdle(at: House): Promise<void> {
  using database = closing(at.database());
  const left = database.db.prepare(`select count(*) from jobs where ${WORK}`).pluck();
  const deadline = Date.now() + IDLE_MS;
  while (left.get() !== 0) {
    if (Date.now() > deadline) throw new Error(`${String(left.get())} jobs are left after ${IDLE_MS} ms`);
    await Bun.sleep(25);
  }
}

/** Fails with what was waited for, where a test would otherwise only run out of time. */
export async function within<T>(ms: number, promise: Promise<T>, what: () => string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`Waited ${ms} ms for ${what()}`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export function closing(db: Sqlite.Database): { db: Sqlite.Database } & Disposable {
  return { db, [Symbol.dispose]: () => void db.close() };
}

function bare(id: string | null): string {
  return (id ?? "").replace(/^<|>$/g, "");
}
