import { describe, expect, test } from "bun:test";
import { queueWarnings } from "../../src/admin/warnings.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { pass, purge } from "../support/purge.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const ANN = "ann@example.net";

const WAYS: [string, (room: Mailroom) => Promise<unknown>][] = [
  [
    "mail to postmaster",
    async (room) => expect(await room.send({ from: ANN, rcpt: "postmaster@mw.test" })).toStartWith("250 "),
  ],
  [
    "the contact form",
    async (room) => {
      const body = JSON.stringify({ name: "Ann", email: ANN, message: "It burns" });
      const headers = { "content-type": "application/json" };
      const { status } = await room.request("/contacts", { method: "POST", headers, body });
      expect(status).toBe(201);
    },
  ],
];

/** What a relay says, and after how many attempts that is the last word. */
const REFUSALS: [string, number][] = [
  ["552 5.3.4 message size exceeds fixed limit", 1],
  ["451 4.3.0 come back later", 2],
];

describe.each(WAYS)("what the server took from somebody by %s", (_way, write) => {
  test.each(REFUSALS)(
    "is kept for the operator when the relay refuses it for good (%s), and goes out when it is tried again",
    async (refusal, attempts) => {
      let said: string | undefined = refusal;
      await using sink = await startSmtpSink({ reject_mail: () => said });
      const relay_url = `smtp://127.0.0.1:${sink.port}`;
      await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
      await write(room);
      for (let count = 0; count < attempts; count += 1) {
        await room.drain();
        room.clock.advance("2m");
      }
      const dead = async () => (await room.owner.get("/admin/queue?state=dead")).body.items;
      const first = await dead();
      expect(first).toMatchObject([
        { kind: "send_mail", why: expect.stringContaining(refusal.slice(0, 9)), account: "ada@example.com" },
      ]);
      expect(await queueWarnings(room.app)).toEqual({ dead: expect.stringMatching(/^1 job was given up/) });
      // Tried in vain, it is kept as it was.
      expect((await room.owner.post(`/admin/queue/${first[0].id}/retry`)).status).toBe(204);
      for (let count = 0; count < attempts; count += 1) {
        await room.drain();
        room.clock.advance("2m");
      }
      const [again, ...others] = await dead();
      expect(others).toEqual([]);
      said = undefined;
      expect((await room.owner.post(`/admin/queue/${again.id}/retry`)).status).toBe(204);
      await room.drain();
      expect(sink.mails).toMatchObject([{ rcpt_to: ["ada@example.com"] }]);
      expect((await room.owner.get("/admin/queue")).body.items).toEqual([]);
      expect(await queueWarnings(room.app)).toEqual({});
    },
  );
});

test("what came back for good keeps its letter as long as its job, and no longer", async () => {
  await using sink = await startSmtpSink({ reject_mail: () => "552 5.3.4 too large" });
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  const retention = { raw_days: 1, delivery_days: 5 };
  await using room = await mailroom({ config: { outbound, retention } });
  await room.send({ from: ANN, rcpt: "postmaster@mw.test" });
  await room.drain();
  await pass(room, 4);
  expect(await room.outgoing()).toMatchObject([{ status: "bounced", raw: expect.any(Uint8Array) }]);
  await pass(room, 3);
  expect((await room.owner.get("/admin/queue?state=dead")).body.items).toEqual([]);
  // With the next look.
  await purge(room);
  expect(await room.outgoing()).toEqual([]);
});

test("a login code that is refused for good leaves no work behind: whoever asked asks again", async () => {
  await using sink = await startSmtpSink({ reject_mail: () => "550 5.7.1 not from you" });
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
  await room.request("/auth/request-code", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: "nobody@example.net" }),
  });
  await room.drain();
  expect((await room.outgoing()).map(({ status }) => status)).toEqual(["bounced"]);
  expect((await room.owner.get("/admin/queue")).body.items).toEqual([]);
});
