import { describe, expect, test } from "bun:test";
import { create, toolRoom, type ToolRoom, type Wanted } from "../support/tool-room.ts";

const event = (title: string): Wanted => create({ title });
const titles = (room: ToolRoom) => room.tools.calls.map(({ args }) => args["title"]);
const down = () => Response.json({ error: { message: "overloaded" } }, { status: 503 });
const stepsOf = async (room: ToolRoom) => JSON.parse((await room.newest()).steps);

type Answer = (genuine: Response, id: unknown) => Response;

/** An error of JSON-RPC, for the request that the next answer belongs to. */
function rpcError(code: number, message: string): Answer {
  return (_genuine, id) => Response.json({ jsonrpc: "2.0", id, error: { code, message } });
}

/** Stands in front of the tool server, and answers the first call otherwise than that does. */
function proxyTo(url: string, spoil: Answer) {
  let spoilt = false;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      const { method, headers } = request;
      const genuine = await fetch(url, { method, headers, ...(body === "" ? {} : { body }) });
      const told = new Response(await genuine.arrayBuffer(), genuine);
      if (spoilt || !body.includes('"tools/call"')) return told;
      spoilt = true;
      return spoil(told, JSON.parse(body).id);
    },
  });
  return { url: `http://127.0.0.1:${server.port}/mcp`, [Symbol.asyncDispose]: () => server.stop(true) };
}

const LOST: [how: string, Answer][] = [
  ["a gateway that waited no longer", () => new Response("Gateway Timeout", { status: 504 })],
  ["a gateway that heard nothing good", () => new Response("<h1>Bad Gateway</h1>", { status: 502 })],
  ["a fault behind the work", () => new Response("oh", { status: 500 })],
  ["a gateway whose server broke off", () => new Response("upstream reset", { status: 503 })],
  ["a server that shows its page after the work", () => new Response("", { status: 303 })],
  ["an error after the work", rpcError(-32_603, "Internal error")],
  ["an error of its own", rpcError(-32_000, "failed to say what was made")],
  ["an answer that does not fit", rpcError(-32_602, "Output validation error: no structured content")],
  [
    "a connection that broke off",
    () => {
      const cut = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode("{"));
          controller.error(new Error("cut"));
        },
      });
      return new Response(cut, { headers: { "content-type": "application/json" } });
    },
  ],
  [
    "a page in place of an answer",
    () => new Response("<html>", { headers: { "content-type": "text/html" } }),
  ],
];

async function roomBehind(spoil: Answer, rounds: Parameters<typeof toolRoom>[0]) {
  await using stack = new AsyncDisposableStack();
  const room = stack.use(await toolRoom(rounds));
  const proxy = stack.use(proxyTo(room.tools.url, spoil));
  const moved = await room.owner.patch(`/connections/${room.connection.id}`, { base_url: proxy.url });
  expect(moved.status).toBe(200);
  await room.send({ text: "@calendar Make what I said" });
  await room.drain();
  const kept = stack.move();
  return Object.assign(room, { [Symbol.asyncDispose]: () => kept.disposeAsync() });
}

describe("a call that was made, and whose answer was lost by", () => {
  test.each(LOST)("%s: is not made again in the same run until the model insists", async (_how, spoil) => {
    await using room = await roomBehind(spoil, [[event("Lunch")], [event("Lunch")], "Booked."]);
    expect(titles(room)).toEqual(["Lunch"]);
    const told = room.model.requests.map(({ body }) => body?.messages.at(-1)?.content ?? "");
    expect(told[1]).toContain("It may or may not have been done: look there before you ask for it again.");
    expect(told[2]).toContain("Not called again:");
    expect(told[2]).toContain("If it was not done, ask for it once more just so.");
    // Its sender hears of it too.
    expect(await stepsOf(room)).toContainEqual(
      expect.objectContaining({
        type: "warning",
        output: expect.stringContaining("mcp:calendar create_event: It may or may not have been done"),
      }),
    );
  });

  test("whatever: is made once more where the model asks for it a third time, and another call at once", async () => {
    const lose = () => new Response("", { status: 504 });
    await using room = await roomBehind(lose, [
      [event("Lunch")],
      [event("Lunch"), event("Dinner")],
      [event("Lunch")],
      "Booked.",
    ]);
    expect(titles(room)).toEqual(["Lunch", "Dinner", "Lunch"]);
  });

  test.each(LOST)("%s: is not made in other words until the model insists", async (_how, spoil) => {
    await using room = await roomBehind(spoil, [
      [event("Lunch")],
      [event("Lunch with Eve")],
      [event("Lunch with Eve")],
      "Booked.",
    ]);
    expect(titles(room)).toEqual(["Lunch", "Lunch with Eve"]);
    const told = room.model.requests.map(({ body }) => body?.messages.at(-1)?.content ?? "");
    expect(told[2]).toContain("Not called:");
    expect(told[2]).toContain('{"title":"Lunch"}');
    expect(told[2]).toContain("If it is another one, ask for it again just so.");
    expect(told[3]).not.toContain("Not called");
  });

  test("whatever: holds up no other call that was asked for with it, nor more than one behind it", async () => {
    const lose = () => new Response("", { status: 504 });
    await using room = await roomBehind(lose, [
      [event("Lunch"), event("Dinner")],
      [event("Tea"), event("Cake")],
      [event("Tea")],
      [event("Walk")],
      "Booked.",
    ]);
    expect(titles(room)).toEqual(["Lunch", "Dinner", "Cake", "Tea", "Walk"]);
  });

  test("whatever: is in doubt no more once it is made again and answered", async () => {
    const lose = () => new Response("", { status: 504 });
    await using room = await roomBehind(lose, [
      [event("Lunch")],
      [event("Lunch")],
      [event("Lunch")],
      [event("Dinner")],
      "Booked.",
    ]);
    expect(titles(room)).toEqual(["Lunch", "Lunch", "Dinner"]);
  });

  test.each(LOST)("%s: is not made again in other words when its run is done again", async (_how, spoil) => {
    await using room = await roomBehind(spoil, [
      [event("Lunch")],
      down,
      [event("Lunch with Eve")],
      "Booked.",
    ]);
    room.clock.advance("10s");
    await room.drain();
    expect((await room.newest()).state).toBe("done");
    expect(titles(room)).toEqual(["Lunch"]);
    expect(room.model.requests.at(-1)?.body?.messages.at(-1)?.content).toContain(
      "may or may not have been done",
    );
  });
});

const REFUSED: [how: string, (id: unknown) => Response][] = [
  ...[400, 401, 403, 429, 501].map((status): (typeof REFUSED)[number] => [
    String(status),
    () => new Response("no", { status }),
  ]),
  ...[-32_601, -32_602, -32_600].map((code): (typeof REFUSED)[number] => [
    String(code),
    (id) => rpcError(code, "no")(new Response(), id),
  ]),
];

test.each(REFUSED)(
  "a call that was refused (%s) is made again as soon as it is asked for, and nobody is told that it may be done",
  async (_how, refusal) => {
    let refused = false;
    await using stack = new AsyncDisposableStack();
    const room = stack.use(await toolRoom([[event("Lunch")], [event("Lunch")], "Booked."]));
    const front = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const body = await request.text();
        if (!refused && body.includes('"tools/call"')) {
          refused = true;
          return refusal(JSON.parse(body).id);
        }
        const { method, headers } = request;
        return fetch(room.tools.url, { method, headers, ...(body === "" ? {} : { body }) });
      },
    });
    stack.defer(() => front.stop(true));
    await room.owner.patch(`/connections/${room.connection.id}`, {
      base_url: `http://127.0.0.1:${front.port}/mcp`,
    });
    await room.send({ text: "@calendar Make what I said" });
    await room.drain();
    expect(titles(room)).toEqual(["Lunch"]);
    expect(JSON.stringify(await stepsOf(room))).not.toContain("may or may not");
  },
);
