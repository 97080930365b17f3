import { describe, expect, test } from "bun:test";
import { StorageError } from "../../src/db/storage-faults.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { JOB_RULES } from "../../src/jobs/kinds.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { type Mailroom, mailroom } from "../support/mailroom.ts";
import { mayWrite } from "../support/refused-writes.ts";
import { setWorker } from "../support/app.ts";
import { type SinkOptions, startSmtpSink } from "../support/smtp-sink.ts";

const PAST_LEASE = `${JOB_RULES.send_mail.lease_seconds + 60}s`;

/** A room whose answers go to a relay; `beforeWord` is called when that has all of one and has not said so yet. */
async function relayed(beforeWord: NonNullable<SinkOptions["beforeWord"]>) {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink({ starttls: false, beforeWord }));
  const room = stack.use(
    await mailroom({
      config: {
        outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
        egress: { allow: ["127.0.0.1"] },
      },
    }),
  );
  const built = stack.move();
  return { room, sink, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

/** Resolves when a mail has been handed over and a write has been refused since. */
function refusedOutcome({ app }: Mailroom): Promise<void> {
  const refused = Promise.withResolvers<void>();
  const { metrics, write } = app;
  let handed_over = false;
  const time: typeof metrics.time = (name, ...rest) => {
    handed_over ||= name === "mailwright_send_seconds";
    metrics.time(name, ...rest);
  };
  Object.assign(app, { metrics: { ...metrics, time } });
  app.write = async (operation) => {
    try {
      return await write(operation);
    } catch (error) {
      if (handed_over) refused.resolve();
      throw error;
    }
  };
  return refused.promise;
}

describe("an answer is handed over once, and is shown as sent,", () => {
  test("when the disk can only be read from the moment the relay has it until its lease is over", async () => {
    const holder: { room?: Mailroom } = {};
    await using at = await relayed(async () => holder.room && mayWrite(holder.room, false));
    const { room, sink } = at;
    holder.room = room;
    const refused = refusedOutcome(room);
    expect(await room.send({})).toStartWith("250");
    const working = room.drain();
    await refused;
    room.clock.advance(PAST_LEASE);
    await mayWrite(room, true);
    await Promise.all([room.drain(), working]);
    expect(sink.mails).toHaveLength(1);
    expect(await room.outgoing()).toMatchObject([{ status: "sent", attempts: 1 }]);
  });

  test("when the process stands still from the moment the relay has it until its lease is over", async () => {
    const taken = Promise.withResolvers<void>();
    await using at = await relayed(async () => taken.resolve());
    const { room, sink } = at;
    expect(await room.send({})).toStartWith("250");
    const working = room.drain();
    await taken.promise;
    room.clock.advance(PAST_LEASE);
    await Promise.all([room.drain(), working]);
    expect(sink.mails).toHaveLength(1);
    expect(await room.outgoing()).toMatchObject([{ status: "sent", attempts: 1 }]);
  });

  test("when the server is told to stop, and the relay takes longer to say so than other work may", async () => {
    const taken = Promise.withResolvers<void>();
    const word = Promise.withResolvers<void>();
    await using at = await relayed(() => {
      taken.resolve();
      return word.promise;
    });
    const { room, sink } = at;
    const handlers = jobHandlers(room.app);
    const { run } = handlers.send_mail;
    handlers.send_mail.run = (app, job, signal) => {
      signal.addEventListener("abort", () => word.resolve());
      return run(app, job, signal);
    };
    const worker = createWorker(room.app, handlers, {
      patience: { drain_ms: 0, abandon_ms: 0, word_ms: 50_000 },
    });
    setWorker(room.app, worker);
    expect(await room.send({})).toStartWith("250");
    const working = worker.drain();
    await taken.promise;
    await worker[Symbol.asyncDispose]();
    expect(await room.outgoing()).toMatchObject([{ status: "sent", attempts: 1 }]);
    expect(sink.mails).toHaveLength(1);
    await working;
  });

  test("when another server may have taken over by the time the relay wants it, until that is known not to be", async () => {
    await using at = await relayed(() => Promise.resolve());
    const { room, sink } = at;
    const { lockGone } = room.app;
    room.app.lockGone = () => new StorageError("LOCK_GONE", "the lock is gone");
    expect(await room.send({})).toStartWith("250");
    await room.drain();
    const waiting = { kind: "send_mail", attempts: 0, failures: 0, last_error: "the lock is gone" };
    expect(await room.app.db.selectFrom("jobs").selectAll().execute()).toMatchObject([waiting]);
    expect(await room.outgoing()).toMatchObject([{ status: "queued", attempts: 0 }]);
    expect(sink.mails).toEqual([]);
    room.app.lockGone = lockGone;
    room.clock.advance("1m");
    await room.drain();
    expect(sink.mails).toHaveLength(1);
    expect(await room.outgoing()).toMatchObject([{ status: "sent", attempts: 1 }]);
  });
});
