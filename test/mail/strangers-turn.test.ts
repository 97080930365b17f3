import { expect, test } from "bun:test";
import { freshId } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { signedRoom, type SignedRoom } from "../support/signed-room.ts";

/** One run at a time, so that what the model is asked has an order. */
const ONE_BY_ONE = { plans: { team: { concurrent_routes: 1 } } };

async function stranger(room: SignedRoom, nth: number): Promise<void> {
  const mail = { from: `Eve <eve${nth}@example.net>`, to: room.inbox.address, subject: `Stranger ${nth}` };
  const page = { filename: "a.html", content_type: "text/html", content: "<p>A page.</p>" };
  const raw = rawMail({ ...mail, text: "Hi", attachments: [page], ...freshId() });
  expect(await room.send({ mail_from: `eve${nth}@example.net`, raw })).toStartWith("250");
}

/** The subjects in the order in which the model was asked about them. */
function asked(room: SignedRoom): string[] {
  return room.model.requests.map(
    ({ body }) => /Stranger \d|Urgent|Called/.exec(JSON.stringify(body))?.[0] ?? "",
  );
}

test("the owner's mail and call are worked on before mails of strangers that have come earlier", async () => {
  await using room = await signedRoom({ config: ONE_BY_ONE });
  for (let nth = 0; nth < 5; nth += 1) await stranger(room, nth);
  await room.again(await room.signed({ subject: "Urgent", text: "Say hello." }));
  await room.owner.post("/v1/messages", { instruction: "Called: say hello.", async: true });
  const authorities = await room.app.db.selectFrom("messages").select("authority").orderBy("id").execute();
  const households = authorities.map(({ authority }) => authority === "owner");
  expect(households).toEqual([false, false, false, false, false, true, true]);
  await room.drain();
  const strangers = Array.from({ length: 5 }, (_one, nth) => `Stranger ${nth}`);
  expect(asked(room)).toEqual(["Urgent", "Called", ...strangers]);
});

test("a stranger's mail that the owner has tried again waits behind no other of them", async () => {
  await using room = await signedRoom({ config: ONE_BY_ONE });
  room.model.fault = "content_filter";
  await stranger(room, 1);
  await room.drain();
  const failed = await room.newest();
  room.model.fault = "none";
  const before = room.model.requests.length;
  await stranger(room, 2);
  expect((await room.owner.post(`/messages/${failed.id}/retry`)).status).toBe(202);
  await room.drain();
  expect(asked(room).slice(before)).toEqual(["Stranger 1", "Stranger 2"]);
});
