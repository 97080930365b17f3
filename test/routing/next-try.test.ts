import { describe, expect, test } from "bun:test";
import type { Caller } from "../support/app.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";

const CONFIG = { egress: { allow: ["127.0.0.1"] } };

/** A room whose inbox has a connection of its own, to a model that is down. */
async function downRoom() {
  const behaviour: { reply: () => Promise<string | Response> | string | Response } = { reply: down };
  const room = await mailroom({ config: CONFIG, model: { reply: () => behaviour.reply() } });
  const id = await connect(room, room.owner, "own");
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: id });
  return Object.assign(room, { connection: id, behaviour });
}

type DownRoom = Awaited<ReturnType<typeof downRoom>>;

function down(): Response {
  return Response.json({ error: { message: "internal" } }, { status: 500 });
}

function up(): string {
  return "Done.";
}

async function connect(room: Mailroom, owner: Caller, model: string): Promise<string> {
  const { body } = await owner.post("/connections", {
    kind: "openai_compatible",
    base_url: room.model.base_url,
    model,
  });
  return body.id;
}

async function story(room: Mailroom) {
  const { id } = await room.newest();
  return (await room.owner.get(`/messages/${id}`)).body;
}

/** How often the model was asked for an answer, without tests of connections. */
const asked = (room: Mailroom) =>
  room.model.requests.filter(({ body }) => JSON.stringify(body ?? "").includes("@mw.test")).length;

/** Has a mail tried three times in vain, so that its next try is minutes away. */
async function triedInVain(room: Mailroom): Promise<void> {
  await room.send(freshId());
  for (const wait of ["2s", "30s", "0s"]) {
    await room.drain();
    room.clock.advance(wait);
  }
  expect(await story(room)).toMatchObject({ status: "received", may_retry: "now", running: false });
}

const MENDS: [string, (room: DownRoom) => Promise<unknown>][] = [
  [
    "its key is changed",
    (room) => room.owner.patch(`/connections/${room.connection}`, { credential: "new" }),
  ],
  ["its model is changed", (room) => room.owner.patch(`/connections/${room.connection}`, { model: "other" })],
  [
    "it is given a fallback",
    async (room) => {
      const fallback_connection_id = await connect(room, room.owner, "spare");
      await room.owner.patch(`/connections/${room.connection}`, { fallback_connection_id });
    },
  ],
  ["it is tested with success", (room) => room.owner.post(`/connections/${room.connection}/test`)],
  [
    "one that it falls back on is tested with success",
    async (room) => {
      const spare = await connect(room, room.owner, "spare");
      await room.owner.patch(`/connections/${room.connection}`, { fallback_connection_id: spare });
      await room.drain();
      room.clock.advance("1s");
      room.behaviour.reply = up;
      await room.owner.post(`/connections/${spare}/test`);
    },
  ],
];

describe("a mail whose model has failed for the moment", () => {
  test.each(MENDS)("is tried at once when its connection is mended: %s", async (how, mend) => {
    await using room = await downRoom();
    await triedInVain(room);
    const before = asked(room);
    await room.drain();
    expect(asked(room)).toBe(before);
    if (!how.startsWith("one that")) room.behaviour.reply = up;
    await mend(room);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", result: "Done." });
  });

  test("goes on waiting where another connection, or another account's, is mended, or only a label is changed", async () => {
    await using room = await downRoom();
    await triedInVain(room);
    const other = await connect(room, room.owner, "other");
    const bob = await room.as("bob@example.com");
    const his = await connect(room, bob, "his");
    const before = asked(room);
    room.behaviour.reply = up;
    for (const path of [`/connections/${other}`, `/connections/${other}/test`])
      await (path.endsWith("test") ? room.owner.post(path) : room.owner.patch(path, { model: "x" }));
    await bob.patch(`/connections/${his}`, { model: "y" });
    await bob.post(`/connections/${his}/test`);
    await room.owner.patch(`/connections/${room.connection}`, { label: "Mine" });
    await room.drain();
    expect([asked(room), (await story(room)).status]).toEqual([before, "received"]);
  });

  test("goes on waiting where the test fails, and a try in between costs it none of its own", async () => {
    await using room = await downRoom();
    await triedInVain(room);
    const failures = () =>
      room.app.db
        .selectFrom("jobs")
        .select(["failures", "run_at"])
        .where("kind", "=", "route_message")
        .executeTakeFirstOrThrow();
    const before = await failures();
    room.model.fault = "unauthorized";
    expect((await room.owner.post(`/connections/${room.connection}/test`)).body.ok).toBe(false);
    await room.drain();
    expect(await failures()).toEqual(before);
    room.model.fault = "none";
    await room.owner.patch(`/connections/${room.connection}`, { model: "other" });
    await room.drain();
    expect((await failures()).failures).toBe(before.failures);
    expect((await failures()).run_at).toBeGreaterThanOrEqual(before.run_at);
  });

  test("is tried now by whoever wants that, and the step about it is two sentences", async () => {
    await using room = await downRoom();
    await triedInVain(room);
    const { steps, message_id } = await story(room);
    expect(steps[0].output).toMatch(/It said: internal\. It is asked again at /);
    const [listed] = await room.activity();
    expect(listed).toMatchObject({ status: "received", may_retry: "now", waits_until: null });
    room.behaviour.reply = up;
    const bob = await room.as("bob@example.com");
    expect((await bob.post(`/messages/${message_id}/retry`)).status).toBe(404);
    const again = await room.owner.post(`/messages/${message_id}/retry`);
    expect([again.status, again.body]).toMatchObject([202, { message_id, status: "processing" }]);
    // It has its turn by now, so that there is nothing to be tried a second time.
    expect((await room.owner.post(`/messages/${message_id}/retry`)).status).toBe(409);
    await room.drain();
    expect(await story(room)).toMatchObject({ status: "done", result: "Done.", may_retry: null });
  });

  test("is found among many, each tried once and no more than the plan runs at once", async () => {
    await using room = await downRoom();
    for (let mail = 0; mail < 60; mail += 1) await room.send({ ...freshId(), text: `Order ${mail}` });
    await room.drain();
    const before = asked(room);
    let now = 0;
    let most = 0;
    room.behaviour.reply = async () => {
      most = Math.max(most, (now += 1));
      await Bun.sleep(2);
      now -= 1;
      return "Done.";
    };
    expect((await room.owner.post(`/connections/${room.connection}/test`)).body.ok).toBe(true);
    await room.drain();
    expect(asked(room) - before).toBe(60);
    expect(new Set((await room.activity()).map(({ status }) => status))).toEqual(new Set(["done"]));
    expect(most).toBeLessThanOrEqual(room.app.config.routing.concurrency);
  });
});
