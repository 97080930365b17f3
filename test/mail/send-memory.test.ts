import { expect, test } from "bun:test";
import { sendLater } from "../../src/mail/sending/outgoing.ts";
import { testApp } from "../support/app.ts";
import { until } from "../support/until.ts";

const LARGE_BYTES = 16 * 1_048_576;

test("of large mails on their way no more are held in memory than there is room for, and a small one passes them", async () => {
  await using t = await testApp({ outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:9" } });
  const [{ user: ada }, { user: bob }] = [await t.as("ada@client.example"), await t.as("bob@client.example")];
  const begun: string[] = [];
  const goOn = Promise.withResolvers<void>();
  t.app.sender.send = async ({ envelope_to }) => {
    begun.push(envelope_to);
    await goOn.promise;
    return { status: "sent", response: "250 taken", tls: false };
  };
  const queue = (user_id: string, envelope_to: string, bytes: number) =>
    t.app.write((tx) =>
      sendLater(t.app, tx, {
        id: t.app.newId(),
        user_id,
        message_id: null,
        kind: "notice",
        envelope_from: "desk@mw.test",
        envelope_to,
        rfc_message_id: `<${envelope_to}>`,
        raw: Buffer.concat([
          Buffer.from("From: desk@mw.test\r\nSubject: Hello\r\n\r\n"),
          Buffer.alloc(bytes, "a"),
        ]),
      }),
    );
  for (let count = 1; count <= 4; count++) await queue(ada.id, `large${count}@there.example`, LARGE_BYTES);
  await queue(bob.id, "small@there.example", 100);
  const drained = t.drain();
  const waiting = () =>
    t.app.db
      .selectFrom("jobs")
      .select("id")
      .where("kind", "=", "send_mail")
      .where("status", "=", "pending")
      .execute();
  await until(() => begun.length >= 3);
  expect(begun.toSorted()).toEqual(["large1@there.example", "large2@there.example", "small@there.example"]);
  expect(await waiting()).toHaveLength(2);
  goOn.resolve();
  await drained;
  expect(begun.toSorted().slice(0, 4)).toEqual([1, 2, 3, 4].map((count) => `large${count}@there.example`));
});
