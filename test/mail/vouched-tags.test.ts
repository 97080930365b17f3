import { expect, test } from "bun:test";
import { buildWorld, OWNER } from "../attacks/world.ts";
import { freshId, signedBy } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";

/** Sends a signed mail of the owner's on, as whoever got a copy may, and returns what came of it. */
async function sentOn(rcpt: (address: string) => string[]) {
  await using world = await buildWorld({ office_key: "k" });
  const { address } = world.inboxes.desk;
  const date = new Date(world.room.clock.now()).toUTCString().replace("GMT", "+0000");
  const headers = { Date: date, ...freshId().headers };
  const raw = await signedBy(
    "example.com",
    rawMail({ from: OWNER, to: address, subject: "Hello", text: "Hello.", headers }),
  );
  await world.mail({ raw, mail_from: "eve@example.net", replayed: true, rcpt: rcpt(address) });
  const { authority, tags } = await world.room.newest();
  return { authority, tags: JSON.parse(tags) as string[] };
}

const tagged = (address: string): string => address.replace("@", "+vip@");

test("whoever sends a mail of the owner's on gives it no tag by another recipient", async () => {
  expect(await sentOn((address) => [address, tagged(address)])).toEqual({ authority: "owner", tags: [] });
  expect(await sentOn((address) => [tagged(address)])).toEqual({ authority: "stranger", tags: ["vip"] });
});
