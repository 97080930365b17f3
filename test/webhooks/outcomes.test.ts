import { expect, test } from "bun:test";
import { hookDesk } from "../api/hook-desk.ts";
import { deliveriesOf } from "../support/webhook-receiver.ts";

test("of deliveries that are written down together each keeps its own answer", async () => {
  await using t = await hookDesk();
  const { id } = await t.hook();
  const answers = ["", "null", "ok", "0", "\u{1f600} ok"];
  const given = new Map<string, string>();
  t.answer(() => {
    const answer = answers[given.size % answers.length] ?? "";
    given.set(t.received.at(-1)?.headers["webhook-id"] ?? "", answer);
    return new Response(answer);
  });
  for (let count = 0; count < 40; count += 1) await t.happen();
  await t.drain();
  const seen = (await deliveriesOf(t, id)) as { event_id: string; response_body: string | null }[];
  expect(seen).toHaveLength(40);
  for (const { event_id, response_body } of seen) {
    const answer = given.get(event_id);
    expect([event_id, response_body]).toEqual([event_id, answer === "" ? null : (answer ?? "never asked")]);
  }
});
