import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { unfolded } from "../support/mails.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";

async function call(room: Mailroom, instruction: string) {
  const { body } = await room.owner.post("/v1/messages", { instruction });
  return body;
}

const models = (room: Mailroom) => room.model.requests.map(({ body }) => body?.model);

describe("a model on the operator's own connection", () => {
  test("is the configured one, and another ends the run at no cost, with the names that are allowed", async () => {
    await using room = await mailroom();
    const refused = await call(room, "--model=dear Sum up");
    expect(refused).toMatchObject({
      status: "failed",
      error:
        'The model "dear" is not allowed on the connection of this server, which has "stand-in". Leave --model out, or make a connection of your own on the page “Connections” and name it in --connection.',
      credits: { charged: 0, remaining: 10_000 },
    });
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "model_not_allowed" });
    expect(models(room)).toEqual([]);
    expect(await call(room, "--model=stand-in Sum up")).toMatchObject({ status: "done" });
    expect(models(room)).toEqual(["stand-in"]);
  });

  test("may be one that llm.models lists, named exactly", async () => {
    await using room = await mailroom({ config: { llm: { models: ["small", "large"] } } });
    for (const [flag, status] of [
      ["", "done"],
      ["--model=small", "done"],
      ["--model=large", "done"],
      ["--model=stand-in", "done"],
      ["--model=Large", "failed"],
      ["--model=large:dear", "failed"],
      ['--model="large "', "failed"],
      ["--model=small,large", "failed"],
    ])
      expect([flag, (await call(room, `Sum up ${flag}`)).status]).toEqual([flag, status]);
    expect(models(room)).toEqual(["stand-in", "small", "large", "stand-in"]);
    const { error } = await call(room, "Sum up --model=dear");
    expect(error).toContain('which has "stand-in", "small", "large".');
  });

  test("is refused in a plan of a run and in a mail too, whose sender is told", async () => {
    await using room = await mailroom();
    expect(await call(room, "--dry-run --model=dear Sum up")).toMatchObject({ status: "failed" });
    await room.send({ text: "Sum up --model=dear" });
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "model_not_allowed" });
    const [notice] = await room.outgoing();
    const { text } = await simpleParser(Buffer.from(notice?.raw ?? []));
    expect(unfolded(text)).toContain('which has "stand-in"');
    expect(models(room)).toEqual([]);
  });

  test("says nothing about an account's own connections, also where they are named or fall back", async () => {
    const config = { egress: { allow: ["127.0.0.1"] } };
    await using room = await mailroom({ config });
    const own = { kind: "openai_compatible", base_url: room.model.base_url, model: "mine" };
    await room.owner.post("/connections", { ...own, label: "Own" });
    expect(await call(room, "--connection=Own --model=any Sum up")).toMatchObject({ status: "done" });
    expect(models(room)).toEqual(["any"]);
    // There is no name by which the operator's own one could be named.
    expect(await call(room, "--connection=default --model=dear Sum up")).toMatchObject({
      status: "failed",
      error: 'There is no model connection called "default". Yours are "Own".',
    });
    expect(await call(room, "--connection=Owm Sum up")).toMatchObject({
      error: expect.stringContaining('Did you mean "Own"?'),
    });
    expect(models(room)).toEqual(["any"]);
  });

  test("other flags reach it as they are: they make no answer longer than the model's own bound", async () => {
    await using room = await mailroom();
    await call(room, "Sum up --max-tokens=7 --temperature=1.5");
    const [{ body } = {}] = room.model.requests;
    expect([body?.model, body?.max_tokens, body?.temperature]).toEqual(["stand-in", 7, 1.5]);
  });
});
