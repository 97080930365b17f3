import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { unfolded } from "../support/mails.ts";
import { dropJob } from "../../src/operation/admin/change-job.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { signedRoom } from "../support/signed-room.ts";

/** Long enough to lie beside the database. */
const LARGE = "Say hello.\n".repeat(3_000);

function fault(code: string): Error {
  return Object.assign(new Error(`${code}: the disk says so`), { code });
}

/** What the segments of this server say from now on when they are read; gives back what ends it. */
function unreadable(room: Mailroom, error: Error): () => void {
  const { read } = room.app.segments;
  room.app.segments.read = () => Promise.reject(error);
  return () => void (room.app.segments.read = read);
}

async function wait(room: Mailroom, minutes: number): Promise<void> {
  for (let passed = 0; passed < minutes; passed += 1) {
    await room.drain();
    room.clock.advance("1m");
  }
  await room.drain();
}

async function notices(room: Mailroom) {
  const mails = (await room.outgoing()).filter(({ kind }) => kind === "notice");
  return Promise.all(mails.map(async ({ raw }) => simpleParser(Buffer.from(raw ?? []))));
}

describe("storage that cannot be used", () => {
  test.each(["EIO", "EMFILE", "ENFILE", "SQLITE_IOERR_READ", "SQLITE_BUSY"])(
    "for half an hour (%s) uses up no try of a waiting mail",
    async (code) => {
      await using room = await mailroom();
      expect(await room.send({ text: LARGE })).toStartWith("250");
      const mend = unreadable(room, fault(code));
      await wait(room, 30);
      expect(await room.activity()).toMatchObject([{ status: "received" }]);
      const [job] = await room.app.db.selectFrom("jobs").selectAll().execute();
      expect(job).toMatchObject({ failures: 0, status: "pending" });
      expect(job?.last_error).toContain(code);
      mend();
      await wait(room, 1);
      expect(await room.activity()).toMatchObject([{ status: "done", credits_charged: 1 }]);
    },
  );
});

describe("a run that is given up", () => {
  async function givenUp(room: Mailroom, mail: Parameters<Mailroom["send"]>[0]): Promise<void> {
    expect(await room.send(mail)).toStartWith("250");
    await room.app.db.updateTable("raw_mails").set({ bytes: null }).execute();
    for (let round = 0; round < 10; round += 1) {
      await room.drain();
      room.clock.advance("2h");
    }
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "failed", reason: "internal" }]);
  }

  test("tells its sender, in the thread of the mail, though the mail itself cannot be read", async () => {
    await using room = await mailroom();
    await givenUp(room, { headers: { "Message-ID": "<one@example.com>" } });
    const [notice, ...others] = await notices(room);
    expect(others).toEqual([]);
    expect(notice).toMatchObject({ inReplyTo: "<one@example.com>", to: { text: "ada@example.com" } });
    expect(notice?.text).toContain("a fault of this server");
    expect(notice?.text).toContain("Nothing was charged.");
    const [entry] = await room.activity();
    expect(entry.reply_status).not.toBe("none");
  });

  test("tells the owner alone of a stranger's mail, and where the inbox does not answer", async () => {
    const letter = { envelope_to: "ada@example.com", message_id: null };
    await using room = await mailroom();
    await givenUp(room, { from: "Bob <bob@example.org>" });
    expect(await room.outgoing()).toMatchObject([letter]);
    await using silent = await mailroom({ inbox: { reply_enabled: false } });
    await givenUp(silent, {});
    expect(await silent.outgoing()).toMatchObject([letter]);
  });

  test("that the operator takes out of the queue tells the sender why", async () => {
    await using room = await mailroom();
    await room.send({});
    const [job] = await room.app.db.selectFrom("jobs").select("id").execute();
    await dropJob(room.app, job?.id ?? "", "the model is being moved");
    await room.drain();
    const [notice] = await notices(room);
    expect(unfolded(notice?.text)).toContain("took it out of the queue: the model is being moved");
  });
});

describe("a mail that is sent again", () => {
  const mail = freshId();
  const statuses = async (room: Mailroom) => (await room.activity()).map(({ status }) => status);

  test("is worked on where the first one failed, and not where it is done", async () => {
    await using room = await mailroom({ model: { fault: "unauthorized" } });
    await room.send(mail);
    await wait(room, 10);
    expect(await statuses(room)).toEqual(["failed"]);
    room.model.fault = "none";
    expect(await room.send(mail)).toStartWith("250");
    await wait(room, 1);
    expect(await statuses(room)).toEqual(["done", "failed"]);
    expect(await room.send(mail)).toStartWith("250");
    await wait(room, 1);
    expect(await statuses(room)).toEqual(["done", "failed"]);
  });

  test("is worked on where the first one met the credit cap", async () => {
    await using room = await mailroom({ config: { plans: { team: { credits: 1 } } } });
    await room.send(freshId());
    await room.drain();
    await room.send(mail);
    await room.drain();
    expect(await statuses(room)).toEqual(["limited", "done"]);
    room.clock.advance("32d");
    await room.send(mail);
    await room.drain();
    expect(await statuses(room)).toEqual(["done", "limited", "done"]);
  });

  test("by anybody, is tried three times while it fails, and the owner's next mail waits for none of them", async () => {
    await using t = await signedRoom({ config: { plans: { team: { inbound_per_hour: 5 } } } });
    t.model.fault = "unauthorized";
    const raw = await t.signed();
    for (let count = 0; count < 20; count += 1) {
      expect(await t.again(raw)).toStartWith("250");
      await wait(t, 1);
    }
    const entries = await t.activity();
    expect(entries.map(({ status }) => status)).toEqual(["failed", "failed", "failed"]);
    expect(entries.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(17);
    expect(await t.again(await t.signed())).toStartWith("250");
  });
});

describe("an inbox that changes while a mail of it is worked on", () => {
  type Change = (room: Mailroom) => Promise<unknown>;
  const path = (room: Mailroom) => `/inboxes/${room.inbox.id}`;
  const CHANGES: [string, Change, RegExp][] = [
    ["is deleted", (room) => room.owner.delete(path(room)), /deleted/],
    [
      "is told not to answer",
      (room) => room.owner.patch(path(room), { reply_enabled: false }),
      /to answer nobody/,
    ],
    [
      "gets a list without the sender",
      (room) => room.owner.patch(path(room), { allowlist_senders: ["carol@example.org"] }),
      /takes no mail of its sender/,
    ],
  ];
  const BOBS = { from: "Bob <bob@example.org>" };

  /** A room in which `change` is made while its model is asked. */
  async function changing(change: Change): Promise<Mailroom> {
    const room: Mailroom = await mailroom({
      model: {
        reply: async () => {
          await change(room);
          return "Done.";
        },
      },
    });
    return room;
  }

  test.each(CHANGES)("%s: no answer goes out, and the message says why", async (_what, change, why) => {
    await using room = await changing(change);
    await room.send(BOBS);
    await room.drain();
    expect(await room.outgoing()).toEqual([]);
    const message = await room.newest();
    expect(message).toMatchObject({ state: "done", reply_status: "none" });
    expect(message.steps).toMatch(why);
  });

  test.each(CHANGES)(
    "%s after that, before the answer has gone: it is kept back",
    async (_what, change, why) => {
      await using sink = await startSmtpSink({ reject: () => "451 4.3.0 not today" });
      await using room = await mailroom({
        config: {
          outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [60, 300] },
          egress: { allow: ["127.0.0.1"] },
        },
      });
      await room.send(BOBS);
      await room.drain();
      expect(await room.outgoing()).toMatchObject([{ status: "deferred" }]);
      await change(room);
      room.clock.advance("1m");
      await room.drain();
      const [mail] = await room.outgoing();
      expect(mail?.status).toBe("suppressed");
      expect(mail?.response).toMatch(why);
    },
  );

  test("has its address changed: the answer comes from the new one", async () => {
    await using room = await changing((changed) => changed.owner.post(`${path(changed)}/rotate`, {}));
    await room.send({});
    await room.drain();
    const { body: now } = await room.owner.get(path(room));
    expect(now.address).not.toBe(room.inbox.address);
    const [mail] = await room.outgoing();
    const answer = await simpleParser(Buffer.from(mail?.raw ?? []));
    expect(answer.from?.value).toMatchObject([{ address: now.address }]);
  });
});
