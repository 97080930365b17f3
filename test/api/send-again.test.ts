import { expect, test } from "bun:test";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { pass } from "../support/purge.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";

const BOB = "Bob <bob@example.org>";

/** Its relay says of Bob what `said.of_recipient` is, and of whoever writes `said.of_sender`. */
async function room(options: RoomOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const said: Record<"of_recipient" | "of_sender", string | undefined> = {
    of_recipient: "550 5.1.1 no such user",
    of_sender: undefined,
  };
  const sink = stack.use(
    await startSmtpSink({
      reject_sender: () => said.of_sender,
      reject: (address) => (address === "bob@example.org" ? said.of_recipient : undefined),
    }),
  );
  const outbound = { mode: "relay" as const, relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [60] };
  const built = stack.use(await mailroom({ ...options, config: { outbound, ...options.config } }));
  const owned = stack.move();
  return { ...built, sink, said, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function answered(t: Mailroom) {
  expect(await t.send({ from: BOB, text: "What is new?" })).toStartWith("250");
  await t.drain();
  const [message] = await t.activity();
  return message;
}

const again = (t: Mailroom, { message_id }: { message_id: string }) =>
  t.owner.post(`/messages/${message_id}/retry`);
const toBob = ({ mails }: SmtpSink) => mails.filter(({ rcpt_to }) => rcpt_to.includes("bob@example.org"));

test("an answer that came back is mailed again by its owner, also to an address that got none any more", async () => {
  await using t = await room();
  const message = await answered(t);
  expect(message).toMatchObject({ status: "done", reply_status: "bounced", may_retry: "send" });
  const [mail] = await t.outgoing();
  t.said.of_recipient = undefined;
  expect(await t.app.db.selectFrom("suppressions").select("address").execute()).toHaveLength(1);
  const { status, body } = await again(t, message);
  expect([status, body.message_id, body.status, body.reply_status]).toEqual([
    202,
    message.message_id,
    "done",
    "queued",
  ]);
  await t.drain();
  expect(toBob(t.sink)).toHaveLength(1);
  expect(toBob(t.sink)[0]?.raw.toString()).toContain(mail?.rfc_message_id ?? "?");
  const [shown] = await t.activity();
  expect(shown).toMatchObject({
    reply_status: "sent",
    reply_error: null,
    may_retry: null,
    credits_charged: 1,
  });
  expect(t.model.requests).toHaveLength(1);
  expect((await again(t, message)).status).toBe(409);
});

test("one that comes back once more is told of once more, and stops further answers again", async () => {
  await using t = await room();
  const message = await answered(t);
  t.clock.advance("1d");
  await t.drain();
  for (let count = 0; count < 2; count += 1) {
    expect((await again(t, message)).status).toBe(202);
    expect((await again(t, message)).status).toBe(409);
    await t.drain();
    t.clock.advance("1d");
    await t.drain();
  }
  expect((await t.activity())[0]).toMatchObject({ reply_status: "bounced", may_retry: "send" });
  const letters = (await t.outgoing()).filter(({ message_id }) => message_id === null);
  expect(letters).toHaveLength(3);
  const stopped = t.app.db
    .selectFrom("suppressions")
    .select("address")
    .where("suppressed_at", "is not", null);
  expect(await stopped.execute()).toEqual([{ address: "bob@example.org" }]);
});

test("one that the relay took from nobody leaves the queue of what was given up", async () => {
  await using t = await room();
  const dead = async () => (await t.owner.get("/admin/queue?state=dead")).body.items;
  t.said.of_recipient = undefined;
  t.said.of_sender = "550 5.7.0 Account suspended";
  const message = await answered(t);
  t.clock.advance("1h");
  await t.drain();
  expect(await dead()).toHaveLength(1);
  t.said.of_sender = undefined;
  expect((await again(t, message)).status).toBe(202);
  await t.drain();
  expect(await dead()).toEqual([]);
  expect(toBob(t.sink)).toHaveLength(1);
});

test("one whose mail is not kept any more is not, and the answer says where its text is", async () => {
  await using t = await room();
  const message = await answered(t);
  await pass(t, 8);
  expect((await t.activity())[0].may_retry).toBeNull();
  const { status, body } = await again(t, message);
  expect([status, body.code]).toEqual([409, "conflict"]);
  expect(body.fix).toContain("result");
});

test("an answer to somebody who is not listed any more is not sent again", async () => {
  await using t = await room({ inbox: { allowlist_senders: ["bob@example.org"] } });
  const message = await answered(t);
  t.said.of_recipient = undefined;
  await t.owner.patch(`/inboxes/${t.inbox.id}`, { allowlist_senders: ["carol@example.net"] });
  expect((await again(t, message)).status).toBe(202);
  await t.drain();
  expect(toBob(t.sink)).toEqual([]);
  expect((await t.activity())[0].reply_error).toContain("takes no mail of its sender any more");
});

test("a message says that it may be tried again just where that is not refused", async () => {
  let fails = true;
  const reply = () => (fails ? new Response("{}", { status: 401 }) : "Done.");
  await using t = await mailroom({ model: { reply } });
  const { body: failed } = await t.owner.post("/v1/messages", { instruction: "Sum up" });
  await t.send({ text: "Sum up" });
  await t.drain();
  await t.owner.post(`/inboxes/${t.inbox.id}/test`, {});
  const says = async () =>
    Object.fromEntries((await t.activity()).map(({ source, may_retry }) => [source, may_retry]));
  expect(await says()).toEqual({ api: "run", email: "run", test: null });
  fails = false;
  expect((await t.owner.post(`/messages/${failed.message_id}/retry`)).status).toBe(202);
  await t.drain();
  const { body: first } = await t.owner.get(`/messages/${failed.message_id}`);
  expect(first.may_retry).toBeNull();
  expect((await t.owner.post(`/messages/${failed.message_id}/retry`)).status).toBe(409);
  await t.app.db.updateTable("raw_mails").set({ purged_at: t.app.now() }).execute();
  const mail = (await t.activity()).find(({ source }) => source === "email");
  expect(mail.may_retry).toBeNull();
  expect((await t.owner.post(`/messages/${mail.message_id}/retry`)).status).toBe(409);
});
