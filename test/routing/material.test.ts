import { expect, test } from "bun:test";
import { buildPrompt, type PromptInput } from "../../src/pipeline/prompt.ts";
import { mailroom } from "../support/mailroom.ts";
import { ownMs } from "../support/own-time.ts";

/** The longest any other session may be held up (goals: 60 ms), generously. */
const MAX_HOLD_MS = 250;

const NOTHING: PromptInput = {
  instruction: "x",
  now: "",
  subject: "",
  content: "",
  turns: [],
  files: [],
  images: [],
  tools: false,
  schedules: false,
  contexts: [],
  wishes: [],
};

test.each([
  ["beginnings of marks", "<<END".repeat(200_000)],
  ["marks with a space", "<< DATA ".repeat(125_000)],
  ["angle brackets", "<".repeat(1_000_000)],
  ["zero-width characters", "\u200b".repeat(1_000_000)],
])("a megabyte of %s is made ready at once", (_claim, content) => {
  const started = ownMs();
  buildPrompt({ ...NOTHING, content }, "n0nce");
  expect(ownMs() - started).toBeLessThan(MAX_HOLD_MS);
});

test("whole marks are taken out of the material, whatever they say", () => {
  const { messages } = buildPrompt({ ...NOTHING, content: "a <<END 12>> b << data >> c" }, "n0nce");
  expect(messages.at(-1)?.content).toBe(
    "x\n\n<<DATA n0nce>>\na [mark removed] b [mark removed] c\n<<END n0nce>>",
  );
});

test.each([
  ["ISO-8859-1 by name", "text/plain; charset=iso-8859-1", Buffer.from("café", "latin1")],
  ["Windows-1252 without a name", "text/plain", Buffer.from("café", "latin1")],
  ["UTF-16 by its mark", "text/plain", Buffer.from("\ufeffcafé", "utf16le")],
  ["UTF-8", "text/plain", Buffer.from("café")],
])("reads a text file in %s", async (_claim, content_type, bytes) => {
  await using t = await mailroom();
  const attachments = [{ filename: "a.txt", content_type, data: bytes.toString("base64") }];
  await t.owner.post("/v1/messages", { instruction: "Read it", attachments });
  expect(JSON.stringify(t.model.requests.at(-1)?.body)).toContain("café");
});

test("shows no more than 400,000 characters of all files together, and says what was not read", async () => {
  await using t = await mailroom();
  const data = Buffer.from("x".repeat(120_000)).toString("base64");
  const attachments = Array.from({ length: 6 }, (_, n) => ({
    filename: `${n}.txt`,
    content_type: "text/plain",
    data,
  }));
  const { body } = await t.owner.post("/v1/messages", { instruction: "Read them", attachments });
  const words = body.steps.map((step: { output: string }) => step.output);
  expect(words).toContain("Of 0.txt only the first 100,000 characters were read.");
  expect(words).toContain("Not read: 5.txt (too many files).");
});

test("a connection whose secret cannot be opened fails with the mend, which works", async () => {
  await using t = await mailroom();
  const made = await t.owner.post("/connections", { kind: "openai", credential: "sk-0123456789abcdef" });
  await t.owner.patch(`/inboxes/${t.inbox.id}`, { default_connection_id: made.body.id });
  await t.app.db
    .updateTable("connections")
    .set({ sealed: Buffer.from("damaged") })
    .execute();
  await t.send({});
  await t.drain();
  expect((await t.activity())[0]).toMatchObject({ status: "failed", reason: "connection_unreadable" });
  expect(await t.outgoing()).toHaveLength(1);
  const mended = await t.owner.patch(`/connections/${made.body.id}`, { credential: "sk-fedcba9876543210" });
  expect(mended.status).toBe(200);
});

test("four mails of nothing but a subject are four instructions", async () => {
  await using t = await mailroom();
  for (const subject of ["One", "Two", "Three", "Four"])
    await t.send({ subject, text: "", headers: { "Message-ID": `<${subject}@example.com>` } });
  await t.drain();
  expect((await t.activity()).map((message) => message.status)).toEqual(["done", "done", "done", "done"]);
});

test("a provider that wants to be left alone for an hour has failed at once", async () => {
  await using t = await mailroom({ model: { fault: "rate_limited", retry_after: "3600" } });
  await t.send({});
  await t.drain();
  expect((await t.activity())[0]).toMatchObject({ status: "failed", reason: "rate_limited" });
});

test("a letter to the address for delivery reports is refused, not swallowed", async () => {
  await using t = await mailroom();
  await t.send({});
  await t.drain();
  const [reply] = await t.outgoing();
  const answer = await t.send({
    rcpt: reply?.envelope_from ?? "",
    headers: { "Message-ID": "<letter@example.com>" },
  });
  expect(answer).toStartWith("550 5.7.1");
});
