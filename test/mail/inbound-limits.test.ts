import { expect, test } from "bun:test";
import { mailroom } from "../support/mailroom.ts";

const STRANGER = "Eve <eve@example.net>";

test("an inbox asks for patience when it has had its mails of the hour, and takes them again later", async () => {
  await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 2 } } } });
  for (const from of ["a@example.net", "b@example.net"])
    expect(await room.send({ from, text: from })).toStartWith("250");
  const refused = await room.send({ from: "c@example.net", text: "third" });
  expect(refused).toStartWith("451 4.7.1 This address takes no more than 2 mails in an hour; please");
  expect(await room.activity()).toHaveLength(2);
  room.clock.advance("30m");
  expect(await room.send({ from: "c@example.net", text: "third" })).toStartWith("250");
});

test("what others send uses up nothing of the owner's share", async () => {
  await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
  expect(await room.send({ from: STRANGER, text: "one" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "two" })).toStartWith("451");
  expect(await room.send({ text: "of the owner" })).toStartWith("250");
});

test("one sender is asked for patience by the hour and by the day, and no other is", async () => {
  await using room = await mailroom({
    config: { limits: { inbound_per_sender_hour: 2, inbound_per_sender_day: 3 } },
  });
  expect(await room.send({ from: STRANGER, text: "1" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "2" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "3" })).toContain("2 mails in an hour from one sender");
  expect(await room.send({ from: "bob@example.net", text: "3" })).toStartWith("250");
  room.clock.advance("1h");
  expect(await room.send({ from: STRANGER, text: "3" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "4" })).toContain("3 mails in a day");
});

test("a mail to several inboxes is put off as a whole, and counts in none of them", async () => {
  await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  expect(await room.send({ from: STRANGER, text: "fills one" })).toStartWith("250");
  const both = { from: STRANGER, text: "for both", rcpt: [room.inbox.address, other.address] };
  expect(await room.send(both)).toStartWith("451");
  expect(await room.activity()).toHaveLength(1);
  expect(await room.send({ ...both, rcpt: other.address })).toStartWith("250");
});

test("0 is no limit", async () => {
  await using room = await mailroom({
    config: {
      plans: { team: { inbound_per_hour: 0 } },
      limits: { inbound_per_sender_hour: 0, inbound_per_sender_day: 0, replies_per_sender_hour: 0 },
    },
  });
  for (let index = 0; index < 25; index++)
    expect(await room.send({ from: STRANGER, text: String(index) })).toStartWith("250");
});
