import { expect, test } from "bun:test";
import { activeDomain } from "../support/domain-desk.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { startReceiver } from "../support/webhook-receiver.ts";

/** Checks of an active domain are a day apart, and three misses are told. */
const DAYS = 4;

test("an hour without DNS: mail of strangers is put off, answers and webhooks wait, no domain is lost, and then all is done", async () => {
  await using dns = await startDnsServer({
    "client.example": { MX: [[10, "mx.client.example"]], TXT: ["v=spf1 ip4:127.0.0.1 -all"] },
    "_dmarc.client.example": { TXT: ["v=DMARC1; p=none"] },
    "mx.client.example": { A: ["127.0.0.1"] },
    "hooks.client.example": { A: ["127.0.0.1"] },
  });
  // What is kept of an answer must not outlive the outage's beginning.
  dns.ttl = 0;
  await using sink = await startSmtpSink({ starttls: false });
  await using hooks = startReceiver();
  await using room = await mailroom({
    config: {
      dns: { servers: [dns.address] },
      smtp: { trusted_networks: [] },
      outbound: { mode: "direct", retry: Array(20).fill(600) },
      egress: { allow: ["127.0.0.1"] },
      webhooks: { allow: ["hooks.client.example", "127.0.0.1"], backoff: Array(6).fill(900) },
    },
    parts: { smtp_port: sink.port },
  });
  const domain = await activeDomain({ dns }, room.owner);
  const url = hooks.url.replace("127.0.0.1", "hooks.client.example");
  expect((await room.owner.post("/v1/webhooks", { url, event_types: ["*"] })).status).toBe(201);
  await room.owner.patch(`/inboxes/${room.inbox.id}`, {
    allowlist_senders: ["ann@client.example"],
  });
  await forgetNotices(room.app);
  const mail = { from: "Ann <ann@client.example>" };
  const send = (name: string) =>
    room.send({ ...mail, headers: { "Message-ID": `<${name}@client.example>` } });
  expect(await send("before")).toStartWith("250");

  dns.fault("*", "servfail");
  expect(await send("during")).toStartWith("451 4.7.0 The sender's address cannot be checked");
  for (let minutes = 0; minutes <= 60; minutes += 10) {
    await room.drain();
    room.clock.advance("10m");
  }
  expect(await room.activity()).toMatchObject([{ status: "done", reply_status: "deferred" }]);
  expect([sink.mails.length, hooks.received.length]).toEqual([0, 0]);
  dns.fault("*", undefined);
  for (let tries = 0; tries < 3; tries += 1) {
    room.clock.advance("1h");
    await room.drain();
  }
  expect(await send("during")).toStartWith("250");
  await room.drain();
  const sent = { status: "done", reply_status: "sent" };
  expect(await room.activity()).toMatchObject([sent, sent]);
  expect(sink.mails).toHaveLength(2);
  const told = hooks.received.map(({ headers }) => headers["webhook-id"]);
  expect([told.length, new Set(told).size]).toEqual([2, 2]);

  dns.fault("*", "servfail");
  for (let day = 0; day < DAYS; day += 1) {
    room.clock.advance("1d");
    await room.drain();
  }
  const [checked] = (await room.owner.get(`/custom-domains`)).body;
  expect(checked).toMatchObject({ id: domain.id, status: "active", last_checked_at: room.app.now() });
  // Nobody was told that its records are gone: it is only that nobody could look.
  expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(["reply", "reply"]);
});

test("an hour without the model provider: mails are tried again, then say so; calls fail at once in words; then all is as before", async () => {
  await using room = await mailroom();
  const call = async () => {
    const { body } = await room.owner.post("/v1/messages", { instruction: "Say hello", async: true });
    for (const span of ["2s", "2s"]) {
      await room.drain();
      room.clock.advance(span);
    }
    return (await room.owner.get(`/v1/messages/${body.message_id}`)).body;
  };
  expect(await call()).toMatchObject({ status: "done", credits: { charged: 1 } });
  const calls = room.model.requests.length;
  room.model.fault = "html_502";
  for (let minutes = 0; minutes < 60; minutes += 10) {
    expect(await room.send({ text: `Minute ${minutes}` })).toStartWith("250");
    for (const span of ["5m", "5m"]) {
      await room.drain();
      room.clock.advance(span);
    }
    const failed = await call();
    expect(failed).toMatchObject({ status: "failed", credits: { charged: 0 } });
    expect(failed.error).not.toBe("");
  }
  await room.drain();
  for (const span of ["10m", "10m"]) {
    room.clock.advance(span);
    await room.drain();
  }
  // Five tries of each mail, and one or two of each call: nobody hammers a provider that is down.
  expect(room.model.requests.length - calls).toBeLessThanOrEqual(6 * 7);
  const mails = (await room.activity()).filter(({ source }) => source === "email");
  expect(mails).toHaveLength(6);
  for (const mail of mails) expect(mail).toMatchObject({ status: "failed", credits_charged: 0 });
  expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(Array(6).fill("notice"));

  room.model.fault = "none";
  await room.send({ text: "Now" });
  await room.drain();
  expect((await room.activity())[0]).toMatchObject({ status: "done", reply_status: "sent" });
  expect(await call()).toMatchObject({ status: "done", credits: { charged: 1 } });
});
