import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { rawMail } from "../support/mails.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { limitHandles, whyNoLimit } from "./few-handles.ts";
import { house, type ServerProcess } from "./house.ts";
import { closing, untilIdle } from "./load.ts";
import { ask, desk, linesWith, logged } from "./surfaces.ts";

const OWNER = "ann@client.example";

test.skipIf(whyNoLimit !== undefined)(
  "a server without a handle left uses up no try of what it cannot reach anybody for, and goes on once it has some",
  async () => {
    const may_answer = Promise.withResolvers<void>();
    await using model = startModelServer({
      reply: async () => {
        await may_answer.promise;
        return Response.json(ANSWER, { headers: { connection: "close" } });
      },
    });
    await using hook = startReceiver();
    await using sink = await startSmtpSink({ starttls: false });
    await using at = await house({
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [1] },
      egress: { allow: ["127.0.0.1"] },
      webhooks: { allow: ["127.0.0.1"], backoff: [0] },
    });
    await using server = await at.start();
    const owner = await desk(at, server);
    await ask(server, owner, "/v1/webhooks", { url: hook.url, event_types: ["message.completed"] });
    await using door = await smtpClient(server.smtp);
    await door.say("EHLO client.example");
    const send = (id: string): Promise<string> => {
      const headers = { "Message-ID": `<${id}@client.example>` };
      const raw = rawMail({ from: OWNER, to: owner.to, text: `Sum up ${id}.`, headers });
      return door.deliver({ from: OWNER, to: owner.to, raw });
    };
    expect(await send("one")).toStartWith("250 ");
    await ask(server, owner, "/v1/messages", { instruction: "x", async: true });
    await model.received(2);

    takeHandles(server);
    may_answer.resolve();
    await logged(server, '"kind":"send_mail"');
    await logged(server, "deliveries wait");
    expect(await send("two")).toStartWith("250 ");
    await logged(server, '"kind":"route_message"');
    // They are taken by the system, and wait at the doors.
    const late = fetch(`${server.http}/livez`, { keepalive: false });
    const newcomer = smtpClient(server.smtp);
    // All of them come again after that time, which is written down.
    for (const words of ['"kind":"send_mail"', '"kind":"route_message"', "deliveries wait"])
      expect([words, linesWith(server, words)[0]]).toEqual([words, expect.stringContaining('"seconds":15')]);
    expect(linesWith(server, '"level":50')).toEqual([]);
    expect([sink.mails, hook.received, model.requests.length]).toEqual([[], [], 2]);

    giveBackHandles(server);
    expect((await late).status).toBe(200);
    await using greeted = await newcomer;
    expect(greeted.greeting).toStartWith("220 ");
    await sink.next();
    await sink.next();
    await hook.reached(3);
    await untilIdle(at);
    server.kill("SIGTERM");
    await server.exited;
    using database = closing(at.database());
    const rows = (text: string) => database.db.prepare(text).all();
    const done = { state: "done" };
    expect(rows("select state from messages")).toEqual([done, done, done]);
    const sent = { status: "sent", attempts: 1 };
    expect(rows("select status, attempts from outgoing_mails")).toEqual([sent, sent]);
    const told = { status: "delivered", attempts: 1 };
    expect(rows("select status, attempts from webhook_deliveries")).toEqual([told, told, told]);
    expect([sink.mails.length, hook.received.length, model.requests.length]).toEqual([2, 3, 3]);
  },
  90_000,
);

const ANSWER = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "stand-in",
  choices: [{ index: 0, message: { role: "assistant", content: "Done." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

/** Those of input, output and errors, which it has open all the time: whatever it closes, no other one is to be had. */
const TAKEN = 3;
const MANY = 4_096;

function takeHandles({ pid }: ServerProcess): void {
  limitHandles(pid, TAKEN);
}

function giveBackHandles({ pid }: ServerProcess): void {
  limitHandles(pid, MANY);
}
