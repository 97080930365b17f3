import { expect, test } from "bun:test";
import { readPeers } from "../../src/smtp/peers.ts";
import { freshId, mailroom } from "../support/mailroom.ts";

test("mails at the door are counted by where they come from", async () => {
  await using room = await mailroom();
  expect(await readPeers(room.app.db)).toBeUndefined();
  await room.send(freshId());
  expect(await readPeers(room.app.db)).toMatchObject({ mails: 1, addresses: ["127.0.0.1"] });
  // Written down whenever the count has doubled.
  const counts = [];
  for (let mail = 2; mail <= 5; mail++) {
    await room.send(freshId());
    counts.push((await readPeers(room.app.db))?.mails);
  }
  expect(counts).toEqual([2, 2, 4, 4]);
});
