import { expect, spyOn, test } from "bun:test";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { create } from "../support/tool-room.ts";
import { approvalRoom } from "./room.ts";

const LETTER = /^Subject: Waits for your yes/m;

test.each<[string, boolean, number]>([
  ["comes back", true, 1],
  ["arrives", false, 0],
])("of a request whose letter %s the owner is told in another one: %p", async (_what, refused, notices) => {
  await using sink = await startSmtpSink({
    starttls: false,
    reject_mail: (raw) => (refused && LETTER.test(raw.toString()) ? "554 5.7.1 looks like spam" : undefined),
  });
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  await using room = await approvalRoom({
    config: { outbound, egress: { allow: ["127.0.0.1"] } },
    inbox: { allowlist_senders: ["bob@example.org"] },
  });
  const warn = spyOn(room.app.log, "warn");
  room.rounds.push([create()], "It waits.");
  const headers = { "In-Reply-To": "<x@example.org>", "Message-ID": "<a@example.org>" };
  const mail = { from: "Bob <bob@example.org>", subject: "Lunch", text: "Plan a lunch, @calendar", headers };
  expect(await room.send(mail)).toStartWith("250");
  await room.drain();
  room.clock.advance("10m");
  await room.drain();
  const told = sink.mails.filter(
    ({ raw, rcpt_to }) =>
      rcpt_to.includes("ada@example.com") && raw.toString().includes("Calls of tools wait for your yes"),
  );
  expect(told).toHaveLength(notices);
  // That the relay refuses mail is for the operator to see; what its owner is told is not.
  expect(warn.mock.calls.map((said) => said.at(-1))).toEqual(refused ? ["mail not handed over"] : []);
  expect((await room.owner.get("/v1/approvals")).body.items).toMatchObject([{ status: "pending" }]);
});

test("of a request whose letter comes back after the day's letter the owner is told the next day", async () => {
  await using sink = await startSmtpSink({
    starttls: false,
    reject_mail: (raw) => (LETTER.test(raw.toString()) ? "554 5.7.1 looks like spam" : undefined),
  });
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  await using room = await approvalRoom({
    config: { outbound, egress: { allow: ["127.0.0.1"] } },
    inbox: { allowlist_senders: ["bob@example.org"] },
  });
  const ask = async (nth: number) => {
    room.rounds.push([create()], "It waits.");
    const headers = { "In-Reply-To": "<x@example.org>", "Message-ID": `<${nth}@example.org>` };
    const mail = { subject: `Lunch ${nth}`, text: `Plan lunch ${nth}, @calendar`, headers };
    expect(await room.send({ from: "Bob <bob@example.org>", ...mail })).toStartWith("250");
    await room.drain();
    room.clock.advance("10m");
    await room.drain();
  };
  const told = () =>
    sink.mails
      .map(({ raw }) => raw.toString())
      .filter((raw) => raw.includes("Subject: Calls of tools wait for your yes"))
      .map((raw) => /(One call|\d+ calls) of/.exec(raw)?.[1]);
  await ask(1);
  await ask(2);
  expect(told()).toEqual(["One call"]);
  // As the operator can have it tried, and a clock that is set back.
  const early = { run_at: room.app.now() };
  await room.app.db.updateTable("jobs").set(early).where("kind", "=", "mail_notice").execute();
  await ask(3);
  expect(told()).toEqual(["One call"]);
  for (let day = 0; day < 3; day += 1) {
    room.clock.advance("1d");
    await room.drain();
  }
  expect(told()).toEqual(["One call", "3 calls"]);
});
