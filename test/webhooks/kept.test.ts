import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import { hookDesk } from "../api/hook-desk.ts";
import { deliveriesOf, startRawReceiver } from "../support/webhook-receiver.ts";

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/** More than go out at the same time, so that some of them find a connection that has carried one. */
const EVENTS = 12;

interface Came {
  id: string | undefined;
  attempt: string | undefined;
  body: string | undefined;
}

/** A receiver that reads the first request of those over a kept connection, and ends it without an answer. */
function startForgetful(came: Came[], lost: Came[]) {
  const known = new Set<Socket>();
  return startRawReceiver((socket, request) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)\r$`, "m").exec(request)?.[1];
    const body = request.split("\r\n\r\n")[1];
    came.push({ id: field("webhook-id"), attempt: field("service-delivery-attempt"), body });
    if (known.has(socket) && lost.length === 0) {
      lost.push(...came.slice(-1));
      socket.destroy();
    } else {
      known.add(socket);
      socket.write(OK);
    }
  });
}

test("what a kept connection that ended may have carried is sent again at once, as the next attempt of the same event", async () => {
  const came: Came[] = [];
  const lost: Came[] = [];
  await using receiver = await startForgetful(came, lost);
  await using t = await hookDesk();
  const { id } = await t.hook({ url: receiver.url });
  for (let count = 0; count < EVENTS; count += 1) await t.happen();
  await t.drain();
  const [first] = lost;
  expect(came.filter((one) => one.id === first?.id)).toEqual([
    { id: first?.id, body: first?.body, attempt: "1" },
    { id: first?.id, body: first?.body, attempt: "2" },
  ]);
  expect(came).toHaveLength(EVENTS + 1);
  const rows = await deliveriesOf(t, id);
  expect(rows.map(({ status, attempts }) => `${status} ${attempts}`).toSorted()).toEqual([
    ...Array<string>(EVENTS - 1).fill("delivered 1"),
    "delivered 2",
  ]);
});

test("where there is but one attempt, and for a test, no kept connection is used", async () => {
  const came: Came[] = [];
  await using receiver = await startForgetful(came, []);
  await using t = await hookDesk({ webhooks: { allow: ["127.0.0.1"], backoff: [0] } });
  const { id } = await t.hook({ url: receiver.url });
  for (let count = 0; count < EVENTS; count += 1) await t.happen();
  await t.drain();
  expect((await t.ada.post(`/v1/webhooks/${id}/test`)).body).toMatchObject({ status: "delivered" });
  expect([came.length, receiver.connections]).toEqual([EVENTS + 1, EVENTS + 1]);
  for (const row of await deliveriesOf(t, id))
    expect(row).toMatchObject({ status: "delivered", attempts: 1 });
});
