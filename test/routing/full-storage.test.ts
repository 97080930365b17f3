import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { type ModelRequestBody, toolCalls } from "../support/model-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { MB } from "../../src/lib/sizes.ts";

const EVE = "Eve <eve@example.net>";

/** A room for 1 MB whose model makes files of so many bytes, then says `answer`. */
function room(sizes: number[], { answer = "Here they are.", config = {} } = {}): Promise<Mailroom> {
  const reply = ({ messages, tools = [] }: ModelRequestBody) => {
    const name = tools.find((tool) => tool.function.name.endsWith("create_file"))?.function.name;
    const asked = messages.some(({ content }) => content.includes("Make them"));
    if (!asked || name === undefined || messages.at(-1)?.role === "tool") return asked ? answer : "ok";
    const calls = sizes.map((size, at) => ({ filename: `part${at}.txt`, content: "x".repeat(size) }));
    return toolCalls(calls.map((args) => ({ name, args })));
  };
  const small: RoomOptions["config"] = { plans: { team: { storage_mb: 1 } }, ...config };
  return mailroom({ config: small, model: { reply } });
}

async function stored(at: Mailroom): Promise<number> {
  return (await at.owner.get("/usage")).body.storage.bytes;
}

/** Fills the account until next to no more than `free` bytes of its bound are free. */
async function leave(at: Mailroom, free: number): Promise<void> {
  const missing = MB - free - (await stored(at)) - 1_000;
  const data = Buffer.alloc(missing, "x").toString("base64");
  const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
  expect((await at.owner.post("/v1/messages", { instruction: "Keep it", attachments })).status).toBe(200);
}

function warnings(message: { steps: { type: string; output: string }[] }): string[] {
  return message.steps.filter(({ type }) => type === "warning").map(({ output }) => output);
}

function gone({ attachments }: { attachments: { purged?: boolean }[] }): boolean[] {
  return attachments.map(({ purged = false }) => purged);
}

const LACK =
  /^Not kept for want of room: .*This account may store 1 MB.*“Days to keep content”.*plans\.team\.storage_mb/;

describe("a run whose account has no room for all that came of it", () => {
  test("is done with its answer, keeps the files that fit, and says which it left out and what to do", async () => {
    await using at = await room([200_000, 200_000, 100_000]);
    await leave(at, 350_000);
    const { body } = await at.owner.post("/v1/messages", { instruction: "Make them" });
    expect(body).toMatchObject({ status: "done", result: "Here they are.", credits: { charged: 1 } });
    expect(gone(body)).toEqual([false, true, false]);
    const urls: string[] = body.attachments.map(({ url }: { url: string }) => url);
    const answers = await Promise.all(urls.map((url) => at.owner.get(url)));
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200]);
    expect(warnings(body)).toEqual([expect.stringMatching(LACK)]);
    expect(warnings(body)[0]).toContain("part1.txt (0.2 MB)");
    expect(await stored(at)).toBeLessThanOrEqual(MB);
  });

  test("keeps the whole text of its answer, however little room there is", async () => {
    const answer = "A long answer. ".repeat(40_000);
    await using at = await room([10], { answer });
    await leave(at, 2_000);
    const { body } = await at.owner.post("/v1/messages", { instruction: "Make them" });
    expect([body.status, body.result]).toEqual(["done", answer]);
    expect(gone(body)).toEqual([true]);
  });

  test("says nothing and asks for nothing where there is room", async () => {
    await using at = await room([200_000]);
    const { body } = await at.owner.post("/v1/messages", { instruction: "Make them" });
    expect(gone(body)).toEqual([false]);
    expect(warnings(body)).toEqual([]);
  });

  test("is not weighed where next to nothing came of it", async () => {
    await using at = await room([10_000]);
    const before = await at.owner.post("/v1/messages", { instruction: "Make them", async: true });
    await at.app.db
      .updateTable("account_storage")
      .set({ bytes: 2 * MB })
      .execute();
    await at.drain();
    const { body } = await at.owner.get(`/v1/messages/${before.body.message_id}`);
    expect(body.status).toBe("done");
    expect(gone(body)).toEqual([false]);
  });

  test("keeps of a stranger's mail no files beyond what strangers may fill, and tells the owner alone", async () => {
    await using at = await room([]);
    await leave(at, 600_000);
    const file = { filename: "offer.txt", content: "y".repeat(200_000) };
    expect(await at.send({ from: EVE, text: "Look", attachments: [file] })).toStartWith("250 ");
    await at.drain();
    const [message] = await at.activity();
    expect(message).toMatchObject({ status: "done", attachments: [{ filename: "offer.txt", purged: true }] });
    const [lack, ...others] = warnings(message).filter((output) => LACK.test(output));
    expect([lack, others]).toEqual([expect.stringContaining("80 %"), []]);
    expect(lack).toContain("The mail as it came still has");
    const reply = (await at.outgoing()).find(({ envelope_to }) => envelope_to === "eve@example.net");
    expect((await simpleParser(Buffer.from(reply?.raw ?? []))).text).not.toContain("plan");
    // The same of the owner's own mail is kept.
    expect(
      await at.send({ text: "Look", attachments: [{ ...file, content: "z".repeat(90_000) }] }),
    ).toStartWith("250 ");
    await at.drain();
    const [own] = await at.activity();
    expect(gone(own)).toEqual([false]);
    expect(warnings(own).filter((output) => LACK.test(output))).toEqual([]);
  });

  test("keeps no more than a failed one's text either", async () => {
    await using at = await room([]);
    await leave(at, 600_000);
    at.model.fault = "unauthorized";
    await at.send({
      from: EVE,
      text: "Look",
      attachments: [{ filename: "a.txt", content: "y".repeat(200_000) }],
    });
    await at.drain();
    expect((await at.activity())[0]).toMatchObject({ status: "failed", attachments: [{ purged: true }] });
  });

  test("mails its files all the same, and forgets that mail once it has been handed over", async () => {
    await using sink = await startSmtpSink();
    const config = { outbound: { mode: "relay" as const, relay_url: `smtp://${sink.host}:${sink.port}` } };
    await using at = await room([300_000], { config });
    await leave(at, 50_000);
    await at.send({ text: "Make them" });
    await at.drain();
    const { attachments, text } = await simpleParser((await sink.next()).raw);
    expect(attachments.map(({ filename, size }) => [filename, size])).toEqual([["part0.txt", 300_000]]);
    expect(text).toContain("Not kept for want of room: part0.txt");
    const [message] = await at.activity();
    expect(message).toMatchObject({ status: "done", result: "Here they are.", reply_status: "sent" });
    expect(await at.outgoing()).toMatchObject([{ status: "sent", raw: null }]);
    expect(await stored(at)).toBeLessThanOrEqual(MB);
  });

  test("leaves them out of a mail that is kept here, which says so", async () => {
    await using at = await room([300_000, 1_000]);
    await leave(at, 50_000);
    await at.send({ text: "Make them" });
    await at.drain();
    const [reply] = await at.outgoing();
    const { attachments, text } = await simpleParser(Buffer.from(reply?.raw ?? []));
    expect(attachments.map(({ filename }) => filename)).toEqual(["part1.txt"]);
    expect(text).toContain("Here they are.");
    expect(text).toContain("Not kept for want of room: part0.txt");
    expect(await stored(at)).toBeLessThanOrEqual(MB);
  });
});
