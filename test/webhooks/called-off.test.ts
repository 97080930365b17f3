import { describe, expect, test } from "bun:test";
import { type HookDesk, hookDesk } from "../api/hook-desk.ts";
import { deliveriesOf, endpointOf } from "../support/webhook-receiver.ts";

const ONE_ATTEMPT = { webhooks: { allow: ["127.0.0.1"], backoff: [0], disable_after: 1 } };

/** An endpoint whose receiver keeps us waiting: `answers` has what ends each wait, in order. */
async function waitedFor(t: HookDesk) {
  const { id } = await t.hook();
  const answers: ((answer: Response) => void)[] = [];
  const begun: (() => void)[] = [];
  t.answer(
    () =>
      new Promise((resolve) => {
        answers.push(resolve);
        begun.shift()?.();
      }),
  );
  const next = (): Promise<void> => new Promise((resolve) => begun.push(resolve));
  const first = next();
  await t.happen();
  const drained = t.drain();
  await first;
  const switchTo = (enabled: boolean) => t.ada.patch(`/v1/webhooks/${id}`, { enabled });
  return { id, answers, next, drained, switchTo };
}

const failure = () => new Response("", { status: 500 });

describe("an attempt that was called off in the middle", () => {
  test("does not end the replay that waits when it fails", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id, answers, next, drained, switchTo } = await waitedFor(t);
    await switchTo(false);
    await switchTo(true);
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 1 });
    const replay = next();
    answers[0]?.(failure());
    await Promise.race([replay, drained]);
    answers[1]?.(new Response());
    await drained;
    expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered", attempts: 1 }]);
    expect(await endpointOf(t, id)).toMatchObject({ enabled: 1, consecutive_failures: 0 });
  });

  test("does not end the replay that is being made, in the same second", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id, answers, next, drained, switchTo } = await waitedFor(t);
    await switchTo(false);
    await switchTo(true);
    const replay = next();
    await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 });
    await replay;
    answers[0]?.(failure());
    // The turn that begins it has written down what there was before.
    const other = next();
    await t.happen();
    const more = t.drain();
    await other;
    expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending" }, { status: "pending" }]);
    for (const answer of answers) answer(new Response());
    await Promise.all([drained, more]);
    expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered" }, { status: "delivered" }]);
    expect(await endpointOf(t, id)).toMatchObject({ enabled: 1, consecutive_failures: 0 });
  });

  test("counts for nothing against an endpoint that was switched on again", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id, answers, drained, switchTo } = await waitedFor(t);
    await switchTo(false);
    await switchTo(true);
    answers[0]?.(failure());
    await drained;
    expect(await deliveriesOf(t, id)).toMatchObject([{ status: "failed", error: "endpoint_disabled" }]);
    expect(await endpointOf(t, id)).toMatchObject({ enabled: 1, consecutive_failures: 0 });
  });

  test("is delivered if it succeeds all the same: then there is nothing to replay", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id, answers, drained, switchTo } = await waitedFor(t);
    await switchTo(false);
    answers[0]?.(new Response());
    await drained;
    expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered", error: null }]);
    expect(await endpointOf(t, id)).toMatchObject({ enabled: 0 });
    await switchTo(true);
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 0 });
  });
});
