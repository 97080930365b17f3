import { describe, expect, test } from "bun:test";
import type { Caller } from "../support/app.ts";
import { pngOf } from "../support/files.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";
import type { ModelRequestBody } from "../support/model-server.ts";
import { type ServedTool, startToolServer } from "../support/tool-server.ts";

const NOTE: ServedTool = {
  name: "read_note",
  description: "Reads.",
  annotations: { readOnlyHint: true },
};
const ODD: ServedTool = {
  name: "odd",
  description: "Odd.",
  inputSchema: { type: "object", properties: { a: { oneOf: [{ type: "string" }] } } },
};
const ODD_WIDTH = 10;
const GOOD_PICTURE = Buffer.from(pngOf(40, 20));
const ODD_PICTURE = Buffer.from(pngOf(ODD_WIDTH, 10));

/** A provider that refuses what is odd in the words of one that never takes any. */
const WORDS: [what: string, said: string][] = [
  ["that it never takes any", "This model does not support tools"],
  ["that they are not supported", "tools are not supported"],
  ["which of them it does not take", "tools.1: the keyword oneOf is not supported"],
  ["what in one of them it does not take", "tools[0].function.parameters.properties.a.oneOf: unsupported"],
];

function refusing(message: string): Response {
  return Response.json({ error: { message, type: "invalid_request_error" } }, { status: 400 });
}

/** The tools that a request names, but for the one that makes files. */
function namesOf({ tools = [] }: ModelRequestBody): string {
  const names = tools.map((tool) => tool.function.name).filter((name) => name !== "files__create_file");
  return `Tools: ${names.join(" ")}`;
}

/** A room where the model of the house refuses odd tools with `said`, and otherwise tells which ones it was offered. */
function pickyRoom(said: string): Promise<Mailroom> {
  return mailroom({
    config: { egress: { allow: ["127.0.0.1"] } },
    model: {
      reply: (body) => (JSON.stringify(body.tools ?? []).includes("oneOf") ? refusing(said) : namesOf(body)),
    },
  });
}

/** Asks from an inbox of the caller's own, with the tools of a server. */
async function askWith(
  caller: Caller,
  url: string,
): Promise<{ result: string; steps: { output: string }[] }> {
  const own = { kind: "mcp", label: "Own", base_url: url };
  const { body: connection } = await caller.post("/connections", own);
  const { body: inbox } = await caller.post("/inboxes", { mcp_connection_ids: [connection.id] });
  const { body } = await caller.post("/v1/messages", { instruction: "Which tools?", inbox_id: inbox.id });
  expect(body).toMatchObject({ status: "done" });
  return body;
}

describe("tools that the model of the house does not take", () => {
  test.each(WORDS)("cost another account none of its own, where it says %s", async (_what, said) => {
    await using hers = startToolServer([NOTE]);
    await using odd = startToolServer([ODD]);
    await using room = await pickyRoom(said);
    const mallory = await room.as("mallory@example.net");
    expect((await askWith(mallory, odd.url)).result).toBe("Tools: ");
    const { result, steps } = await askWith(room.owner, hers.url);
    expect([result, steps]).toEqual(["Tools: own__read_note", []]);
  });

  test.each(WORDS)(
    "cost their own account no others that it took before, where it says %s",
    async (_what, said) => {
      await using good = startToolServer([NOTE]);
      await using odd = startToolServer([ODD]);
      await using room = await pickyRoom(said);
      expect((await askWith(room.owner, good.url)).result).toContain("read_note");
      const refused = await askWith(room.owner, odd.url);
      expect(refused.result).toBe("Tools: ");
      expect(refused.steps.map(({ output }) => output).join()).toContain(said);
      expect((await askWith(room.owner, good.url)).result).toContain("read_note");
    },
  );
});

test("that a model takes no tools is believed for an hour", async () => {
  await using hers = startToolServer([NOTE]);
  let takes = false;
  await using room = await mailroom({
    config: { egress: { allow: ["127.0.0.1"] } },
    model: {
      reply: (body) => (takes || !body.tools ? namesOf(body) : refusing("This model does not support tools")),
    },
  });
  expect((await askWith(room.owner, hers.url)).result).toBe("Tools: ");
  takes = true;
  const requests = room.model.requests.length;
  expect((await askWith(room.owner, hers.url)).result).toBe("Tools: ");
  expect(room.model.requests).toHaveLength(requests + 1);
  room.clock.advance("61m");
  expect((await askWith(room.owner, hers.url)).result).toContain("read_note");
});

/** The model of the house takes pictures, but not the odd one. */
function seeingRoom(): Promise<Mailroom> {
  return mailroom({
    model: {
      reply: ({ messages }) => {
        const widths = widthsIn(JSON.stringify(messages));
        if (widths.includes(ODD_WIDTH)) return refusing("image input is not supported by this model");
        return widths.length > 0 ? "Seen." : "Not seen.";
      },
    },
  });
}

/** How wide the pictures are that a request brings, as PNG has it in its first chunk. */
function widthsIn(request: string): number[] {
  const pictures = request.matchAll(/data:image\/png;base64,([\w+/]+)/g);
  return Array.from(pictures, ([, data = ""]) => Buffer.from(data, "base64").readUInt32BE(16));
}

async function show(caller: Caller, picture: Buffer): Promise<string> {
  const { body } = await caller.post("/v1/messages", {
    instruction: "What is this?",
    attachments: [{ filename: "a.png", content_type: "image/png", data: picture.toString("base64") }],
  });
  expect(body).toMatchObject({ status: "done" });
  return body.result;
}

describe("a picture that the model of the house does not take", () => {
  test("keeps none of another account's from it", async () => {
    await using room = await seeingRoom();
    const mallory = await room.as("mallory@example.net");
    await mallory.post("/inboxes", {});
    expect(await show(mallory, ODD_PICTURE)).toBe("Not seen.");
    expect(await show(room.owner, GOOD_PICTURE)).toBe("Seen.");
  });

  test("keeps none of the same account's from it that has seen one before", async () => {
    await using room = await seeingRoom();
    expect(await show(room.owner, GOOD_PICTURE)).toBe("Seen.");
    expect(await show(room.owner, ODD_PICTURE)).toBe("Not seen.");
    expect(await show(room.owner, GOOD_PICTURE)).toBe("Seen.");
  });

  test("keeps none of the owner's from it when a stranger sent it", async () => {
    await using room = await seeingRoom();
    const attachments = [{ filename: "a.png", content_type: "image/png", content: ODD_PICTURE }];
    await room.send({ from: "Eve <eve@example.net>", attachments, ...freshId() });
    await room.drain();
    expect((await room.newest()).result).toBe("Not seen.");
    expect(await show(room.owner, GOOD_PICTURE)).toBe("Seen.");
  });
});
