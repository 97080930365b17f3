import { describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { simpleParser } from "mailparser";
import { mailsOf } from "../../src/operation/export/bytes.ts";
import type { Caller } from "../support/app.ts";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { type ModelRequestBody, toolCalls } from "../support/model-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const WORD = "Zanzibar";
const BASE64_OF_WORD = Buffer.from(WORD).toString("base64").replace(/=+$/, "").slice(0, -1);
/** More than the database keeps in its own tables. */
const LONG = `${WORD} `.repeat(4_000);
const KEPT = "This was private: its instruction, material, result and files were not kept.";

describe("a private call", () => {
  test("gives its result to the caller and to nobody after that", async () => {
    await using room = await privateRoom();
    const call = {
      instruction: `--private Tell of ${WORD}`,
      content: LONG,
      attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa(LONG) }],
    };
    const answer = await room.owner.post("/v1/messages", call, { "idempotency-key": "k" });
    expect(answer).toMatchObject({ status: 200, body: { status: "done", credits: { charged: 1 } } });
    expect(answer.body.result).toBe(`All about ${WORD}`);
    await room.drain();
    const polled = await room.owner.get(`/v1/messages/${answer.body.message_id}`);
    expect(polled.body).toMatchObject({ status: "done", result: "", subject: "(private)" });
    expect(polled.body.steps.at(-1)).toMatchObject({
      type: "warning",
      output: expect.stringContaining(KEPT),
    });
    const replay = await room.owner.post("/v1/messages", call, { "idempotency-key": "k" });
    expect(replay.headers.get("idempotent-replayed")).toBe("true");
    expect(replay.body).toEqual(polled.body);
    const [message] = await room.activity();
    expect(message).toMatchObject({ result: "", subject: "(private)", tags: [] });
    expect(message.command).toEqual({
      target: null,
      command: "",
      options: { private: true },
      contexts: [],
      tags: [],
      macro: null,
      raw: "",
    });
    await expectNoTrace(room);
  });

  test("keeps of its steps no more than their names, and of its files no bytes", async () => {
    await using room = await privateRoom({ files: true });
    const answer = await room.owner.post("/v1/messages", { instruction: "--private Make a file" });
    expect(answer.body.steps).toContainEqual(
      expect.objectContaining({
        type: "tool_call",
        arguments: expect.objectContaining({ content: expect.stringContaining(WORD) }),
      }),
    );
    expect(answer.body.steps.at(-1).output).toStartWith("Files were made, but not kept");
    expect(answer.body.attachments).toMatchObject([
      { filename: "report.txt", direction: "out", purged: true },
    ]);
    expect((await room.owner.get(answer.body.attachments[0].url)).status).toBe(404);
    const polled = await room.owner.get(`/v1/messages/${answer.body.message_id}`);
    const [step] = polled.body.steps;
    expect(step).toEqual({
      index: 0,
      type: "tool_call",
      server: "files",
      name: "create_file",
      status: "ok",
      output: "",
    });
    await room.drain();
    await expectNoTrace(room);
  });

  test("whose result nobody waited for is done, and says that it was private", async () => {
    await using room = await privateRoom();
    const { body } = await room.owner.post("/v1/messages", { instruction: `--private ${WORD}`, async: true });
    await room.drain();
    const polled = await room.owner.get(`/v1/messages/${body.message_id}`);
    expect(polled.body).toMatchObject({ status: "done", result: "" });
    expect(polled.body.steps.at(-1).output).toContain(KEPT);
    await expectNoTrace(room);
  });

  test("is shown in its conversation without a word, and later turns are not reminded of it", async () => {
    await using room = await privateRoom();
    const first = await room.owner.post("/v1/messages", { instruction: "Begin" });
    const { conversation_id } = first.body;
    await room.owner.post("/v1/messages", { instruction: `--private Tell of ${WORD}`, conversation_id });
    const [item] = (await room.owner.get("/conversations")).body.items;
    expect(item).toMatchObject({ turn_count: 2, snippet: "(private)", subject: "Begin" });
    const { turns } = (await room.owner.get(`/conversations/${conversation_id}`)).body;
    expect(turns[1]).toMatchObject({ instruction: "", reply: "", status: "done", attachments: [] });
    await room.owner.post("/v1/messages", { instruction: "Go on", conversation_id });
    const asked = room.model.requests.at(-1)?.body?.messages ?? [];
    expect(asked.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    expect(JSON.stringify(asked)).not.toContain(`Tell of ${WORD}`);
  });

  test("that fails keeps what is needed to try it again", async () => {
    await using room = await privateRoom();
    room.model.fault = "unauthorized";
    const failed = await room.owner.post("/v1/messages", { instruction: `--private Tell of ${WORD}` });
    expect(failed.body.status).toBe("failed");
    room.model.fault = "none";
    const retry = await room.owner.post(`/messages/${failed.body.message_id}/retry`);
    await room.drain();
    expect((await room.owner.get(`/v1/messages/${retry.body.message_id}`)).body).toMatchObject({
      status: "done",
      result: "",
    });
    expect(room.model.requests.at(-1)?.body?.messages.at(-1)?.content).toContain(WORD);
  });

  test("of the inbox's test gives its result too", async () => {
    await using room = await privateRoom();
    const { body } = await room.owner.post(`/inboxes/${room.inbox.id}/test`, {
      instruction: "--private Test",
    });
    expect(body).toMatchObject({ status: "done", result: `All about ${WORD}` });
    expect((await room.owner.get(`/v1/messages/${body.message_id}`)).body.result).toBe("");
  });
});

describe("a private mail", () => {
  const MAIL = {
    subject: `About ${WORD}`,
    text: `--private Tell of ${WORD}\n\n> ${LONG}`,
  };

  test("is answered with its files, and when that has been handed over no word of it is left", async () => {
    await using sink = await startSmtpSink({ reject_mail: () => (waits ? "451 4.3.0 later" : undefined) });
    let waits = true;
    await using room = await privateRoom({
      files: true,
      config: { outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } },
    });
    await room.send(MAIL);
    await room.drain();
    const [queued] = await room.outgoing();
    expect(queued).toMatchObject({ status: "deferred", private: 1 });
    expect(queued?.raw).not.toBeNull();
    waits = false;
    room.clock.advance("10m");
    await room.drain();
    const mail = await simpleParser((await sink.next()).raw);
    expect(mail.text).toContain(`All about ${WORD}`);
    expect(mail.attachments[0]?.content.toString()).toBe(LONG);
    const [message] = await room.activity();
    expect(message).toMatchObject({ status: "done", result: "", subject: "(private)", reply_status: "sent" });
    expect((await room.owner.get(`/messages/${message.message_id}/raw`)).status).toBe(404);
    expect((await room.outgoing())[0]).toMatchObject({ raw: null, status: "sent" });
    await expectNoTrace(room);
  });

  test("to two inboxes keeps its raw form until neither needs it", async () => {
    await using room = await privateRoom();
    const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
    await room.send({ ...MAIL, rcpt: [room.inbox.address, other.address] });
    await room.drain();
    expect((await room.activity()).map(({ result, status }) => [result, status])).toEqual([
      ["", "done"],
      ["", "done"],
    ]);
    expect(
      (await room.app.db.selectFrom("raw_mails").select(["bytes", "segment"]).execute()).map(Object.values),
    ).toEqual([[null, null]]);
  });

  // What a sender calls a mail must say nothing of what became of it.
  test.each(["(private)", "Secret things"])(
    "called %s is worked on for each of two accounts, and stays for the one that keeps it",
    async (subject) => {
      await using room = await privateRoom({ config: { routing: { concurrency: 1 } } });
      const lea = await room.as("lea@example.org");
      const { body: leas } = await lea.post("/inboxes", { label: "Lea" });
      const to_both = { from: "Lea <lea@example.org>", rcpt: [leas.address, room.inbox.address] };
      expect(await room.send({ ...MAIL, ...to_both, subject })).toStartWith("250");
      await room.drain();
      const [hers] = (await lea.get("/messages")).body.items;
      const [adas] = await room.activity();
      expect([hers.status, hers.error]).toEqual(["done", null]);
      expect([adas.status, adas.error, adas.result]).toEqual(["done", null, `All about ${WORD}`]);
      expect((await room.owner.get(`/messages/${adas.message_id}/raw`)).status).toBe(200);
      // The mail is still there for Ada; of Lea's message it is gone.
      expect((await lea.get(`/messages/${hers.message_id}/raw`)).status).toBe(404);
      expect((await lea.get(`/messages/${hers.message_id}`)).body).toMatchObject({
        raw_available: false,
        content: null,
      });
      expect(await exportedMails(room, lea)).toEqual([]);
      expect(await exportedMails(room, room.owner)).toEqual([`raw/${adas.message_id}.eml`]);
    },
  );

  test("called (private) can be tried again where it failed, whatever it is done with elsewhere", async () => {
    await using room = await privateRoom({ config: { routing: { concurrency: 1 } } });
    const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
    room.model.fault = "unauthorized";
    await room.send({ ...MAIL, subject: "(private)", rcpt: [room.inbox.address, other.address] });
    await room.drain();
    room.model.fault = "none";
    const failed = await room.activity();
    expect(failed.map(({ status }) => status)).toEqual(["failed", "failed"]);
    for (const { message_id } of failed) {
      const retry = await room.owner.post(`/messages/${message_id}/retry`);
      await room.drain();
      const { body } = await room.owner.get(`/v1/messages/${retry.body.message_id}`);
      expect([body.status, body.error]).toEqual(["done", null]);
    }
  });

  test("that nobody may answer keeps no result either", async () => {
    await using room = await privateRoom();
    await room.send({ ...MAIL, text: `--private --no-reply Tell of ${WORD}` });
    await room.drain();
    expect(await room.outgoing()).toEqual([]);
    await expectNoTrace(room);
  });

  test("leaves other mails as they are", async () => {
    await using room = await privateRoom();
    await room.send({ subject: "Plain", text: "Tell" });
    await room.send(MAIL);
    await room.drain();
    const [, plain] = await room.activity();
    expect(plain).toMatchObject({ subject: "Plain", result: `All about ${WORD}`, command: { raw: "Tell" } });
    expect((await room.owner.get(`/messages/${plain.message_id}/raw`)).status).toBe(200);
    const mails = await room.outgoing();
    expect(mails.map((mail) => [mail.private, mail.raw !== null])).toEqual([
      [0, true],
      [1, true],
    ]);
  });
});

function privateRoom({
  files = false,
  ...options
}: RoomOptions & { files?: boolean } = {}): Promise<Mailroom> {
  return mailroom({
    ...options,
    model: {
      reply: ({ messages, tools }: ModelRequestBody) => {
        const name = tools?.find((tool) => tool.function.name.endsWith("create_file"))?.function.name;
        if (!files || name === undefined || messages.at(-1)?.role === "tool") return `All about ${WORD}`;
        return toolCalls([{ name, args: { filename: "report.txt", content: LONG } }]);
      },
    },
  });
}

async function exportedMails({ app }: Mailroom, { user }: Caller): Promise<string[]> {
  const owner = app.db.selectFrom("users").selectAll().where("id", "=", user.id);
  const mails = await Array.fromAsync(mailsOf(app, await owner.executeTakeFirstOrThrow(), []));
  return mails.map(({ name }) => name);
}

/** Looks into every column of every table and into every file beside them. */
async function expectNoTrace(room: Mailroom): Promise<void> {
  const tables = await room.app.db.introspection.getTables();
  for (const { name } of tables)
    for (const row of await room.app.db
      .selectFrom(name as "messages")
      .selectAll()
      .execute())
      for (const [column, value] of Object.entries(row as object))
        expect([name, column, hasWord(value)]).toEqual([name, column, false]);
  const folder = join(room.app.config.data.dir, "mail");
  for (const file of await readdir(folder))
    expect([file, hasWord(await Bun.file(join(folder, file)).bytes())]).toEqual([file, false]);
}

function hasWord(value: unknown): boolean {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);
  return text.includes(WORD) || text.includes(BASE64_OF_WORD);
}
