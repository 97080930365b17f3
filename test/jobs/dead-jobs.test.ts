import { expect, test } from "bun:test";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { mailroom } from "../support/mailroom.ts";
import { pass, purge } from "../support/purge.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

test("what is given up is kept for 30 days from then on, however long it had been held", async () => {
  await using sink = await startSmtpSink({ reject_mail: () => "552 5.3.4 message size exceeds fixed limit" });
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
  await room.owner.post("/admin/queue/hold", { kind: "send_mail" });
  expect(await room.send({ from: "ann@example.net", rcpt: "postmaster@mw.test" })).toStartWith("250 ");
  await pass(room, 31);
  await room.owner.post("/admin/queue/release", { kind: "send_mail" });
  await room.drain();
  const given_up = await queueWarnings(room.app);
  expect(given_up).toMatchObject({ dead: expect.stringContaining("1") });
  await purge(room);
  expect(await queueWarnings(room.app)).toEqual(given_up);
  await pass(room, 31);
  await purge(room);
  expect(await queueWarnings(room.app)).not.toHaveProperty("dead");
});
