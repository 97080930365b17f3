import { expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import { storeMessages } from "./archive.ts";

const STRANGER = "Eve <eve@example.net>";

test("out of credits, both doors take and list what comes as limited, charge nothing, and do not ask to come again", async () => {
  await using room = await mailroom({ config: { plans: { team: { credits: 1 } } } });
  expect(await room.send({ text: "takes the last one", ...freshId() })).toStartWith("250 ");
  await room.drain();
  expect(await room.send({ text: "one too many", ...freshId() })).toStartWith("250 ");
  expect(await room.send({ from: STRANGER, text: "another", ...freshId() })).toStartWith("250 ");
  const call = await room.owner.post("/v1/messages", { instruction: "x" });
  expect([call.status, call.body]).toMatchObject([429, { code: "credit_limit", status: "limited" }]);
  expect(call.headers.get("retry-after")).toBe(null);
  expect(call.headers.get("ratelimit")).toStartWith('"route";r=119;');
  await room.drain();
  const limited = { status: "limited", reason: "credit_limit", credits_charged: 0 };
  expect(await room.activity()).toMatchObject([
    { ...limited, source: "api" },
    { ...limited, source: "email" },
    { ...limited, source: "email" },
    { status: "done", credits_charged: 1 },
  ]);
  expect((await room.owner.get("/auth/me")).body.credits).toMatchObject({ used: 1, remaining: 0 });
  // The owner is told once; who wrote is not.
  const sent = (await room.outgoing()).map(({ kind, envelope_to }) => [kind, envelope_to]);
  expect(sent).toEqual([
    ["reply", "ada@example.com"],
    ["notice", "ada@example.com"],
  ]);
});

test("over their rate, both doors ask to come again, and nothing is listed or charged", async () => {
  await using room = await mailroom({
    config: { plans: { team: { inbound_per_hour: 1, route_per_minute: 1 } } },
  });
  expect(await room.send({ from: STRANGER, text: "the one of this hour", ...freshId() })).toStartWith("250 ");
  expect((await room.owner.post("/v1/messages", { instruction: "x" })).status).toBe(200);
  await room.drain();
  const before = await room.activity();
  expect(await room.send({ from: STRANGER, text: "one too many", ...freshId() })).toStartWith("451 4.7.1 ");
  const [failed] = await storeMessages(room, room.owner.user, [
    { state: "failed", inbox_id: room.inbox.id, source: "api" },
  ]);
  for (const path of ["/v1/messages", `/messages/${failed?.id}/retry`]) {
    const { status, headers, body } = await room.owner.post(path, { instruction: "x" });
    expect([status, body]).toMatchObject([429, { code: "rate_limited", status: 429 }]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  }
  await room.drain();
  expect((await room.activity()).filter(({ message_id }) => message_id !== failed?.id)).toEqual(before);
  expect((await room.owner.get("/auth/me")).body.credits.used).toBe(2);
});

test("where both are used up the rate is told first: it is the one that waiting helps against", async () => {
  const rates = { inbound_per_hour: 1, route_per_minute: 1 };
  await using room = await mailroom({
    config: { plans: { team: rates, free: { ...rates, credits: 0 } } },
  });
  expect(await room.send({ from: STRANGER, text: "one", ...freshId() })).toStartWith("250 ");
  await room.owner.post("/v1/messages", { instruction: "x" });
  await room.drain();
  await setPlan(room.app, { email: "ada@example.com", plan: "free" });
  expect((await room.owner.post("/v1/messages", { instruction: "x" })).body.code).toBe("rate_limited");
  expect(await room.send({ from: STRANGER, text: "two", ...freshId() })).toStartWith("451 4.7.1 ");
});
