import { expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { pngOf } from "../support/files.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { startModelServer } from "../support/model-server.ts";

const EVE = "Eve <eve@example.net>";
const config = { egress: { allow: ["127.0.0.1"] } };

/** Has the inbox ask `acme-internal`, and where that does not answer `ft:nightjar`. */
async function privateModels(room: Mailroom, first: { base_url: string }): Promise<void> {
  const make = async (body: Record<string, unknown>): Promise<string> => {
    const made = await room.owner.post("/connections", { kind: "openai_compatible", ...body });
    expect(made.status).toBe(201);
    return made.body.id;
  };
  const spare = await make({ base_url: room.model.base_url, model: "ft:nightjar" });
  const model = { base_url: first.base_url, model: "acme-internal", fallback_connection_id: spare };
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: await make(model) });
}

async function lastAnswer(room: Mailroom): Promise<{ to: string; words: string }> {
  const mail = (await room.outgoing()).at(-1);
  const { text = "", html } = await simpleParser(Buffer.from(mail?.raw ?? []));
  return { to: mail?.envelope_to ?? "", words: `${text}\n${html || ""}` };
}

test("a stranger is not told which models did and did not answer, and the owner is", async () => {
  await using broken = startModelServer({ fault: "unauthorized" });
  await using room = await mailroom({ config });
  await privateModels(room, broken);
  await room.send({ from: EVE, text: "Hello?" });
  await room.drain();
  const answer = await lastAnswer(room);
  expect(answer.to).toBe("eve@example.net");
  expect(answer.words).toContain("Echo");
  expect(answer.words).not.toMatch(/acme-internal|nightjar|did not answer/);
  const { steps } = await room.newest();
  expect(JSON.parse(steps)).toContainEqual({
    index: 0,
    type: "warning",
    status: "ok",
    output: "The model acme-internal did not answer; ft:nightjar did in its place.",
  });
  await room.send({ text: "Hello?" });
  await room.drain();
  expect((await lastAnswer(room)).words).toContain("The model acme-internal did not answer; ft:nightjar did");
});

test("a stranger is told that a picture was not read, and not by which model", async () => {
  const reply = ({ messages }: { messages: { content: unknown }[] }) =>
    typeof messages.at(-1)?.content === "string"
      ? "Words only."
      : Response.json({ error: { message: "image_url is not supported by this model" } }, { status: 400 });
  await using room = await mailroom({ config, model: { reply } });
  await privateModels(room, room.model);
  const attachments = [{ filename: "pic.png", content_type: "image/png", content: pngOf(40, 20) }];
  await room.send({ from: EVE, text: "What is this?", attachments });
  await room.drain();
  const { words } = await lastAnswer(room);
  expect(words).toContain("Not read: pic.png. Pictures are not seen here.");
  expect(words).not.toContain("acme-internal");
  expect((await room.newest()).steps).toContain("The model acme-internal does not see pictures.");
});

test("a stranger is told of no failure", async () => {
  await using broken = startModelServer({ fault: "unauthorized" });
  await using room = await mailroom({ config, model: { fault: "unauthorized" } });
  await privateModels(room, broken);
  await room.send({ from: EVE, text: "Hello?" });
  await room.drain();
  expect(await room.newest()).toMatchObject({ state: "failed" });
  expect((await room.outgoing()).map(({ envelope_to }) => envelope_to)).not.toContain("eve@example.net");
});
