import { expect, test } from "bun:test";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";
import { KB, MB } from "../../src/lib/sizes.ts";

const JSON_TYPE = "application/json";

interface Large {
  path: string;
  bytes: number;
  type?: string;
  /** Its length is not said before. */
  chunked?: boolean;
}

const LARGE: [string, Large][] = [
  ["a call", { path: "/v1/messages", bytes: 33 * MB }],
  ["a call in chunks", { path: "/v1/messages", bytes: 900 * KB, chunked: true }],
  ["a context", { path: "/contexts", bytes: 900 * KB }],
  [
    "a file of a context",
    { path: "/contexts/upload", bytes: 500 * KB, type: "multipart/form-data; boundary=x" },
  ],
  ["a form of somebody who is not signed in", { path: "/contacts", bytes: 900 * KB }],
];

/** Tells whether what was sent has been read to its end. */
async function sendLarge(
  t: TestApp,
  { key }: Caller,
  { path, bytes, type = JSON_TYPE, chunked }: Large,
): Promise<{ answer: Answer; isRead: boolean }> {
  const pieces = chunked === true ? ["{".padEnd(bytes / 2), "}".padEnd(bytes / 2)] : ["{}".padEnd(bytes)];
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        controller.enqueue(Buffer.from(pieces.shift() ?? ""));
        if (pieces.length === 0) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const length = chunked === true ? {} : { "content-length": String(bytes) };
  const headers = { "x-api-key": key, "content-type": type, ...length };
  const answer = await t.request(path, { method: "POST", headers, body, duplex: "half" });
  return { answer, isRead: pieces.length === 0 };
}

/** Fills the memory for bodies as others would, until it is disposed of. */
function crowd({ app }: TestApp): Disposable {
  using pieces = new DisposableStack();
  for (const [at, size] of [256 * MB, 128 * MB, 127.5 * MB].entries()) {
    const piece = app.bodyMemory.take(`eve${at}`, size);
    if (!piece) throw new Error("there is not so much");
    pieces.use(piece);
  }
  return pieces.move();
}

test.each(LARGE)(
  "where memory is full %s is refused before it is read, else it is read",
  async (_claim, large) => {
    await using t = await testApp();
    const { ada } = await deskOf(t);
    {
      using _crowd = crowd(t);
      const { answer, isRead } = await sendLarge(t, ada, large);
      expect([answer.status, answer.body.code, isRead]).toEqual([503, "unavailable", false]);
      expect(answer.headers.get("retry-after")).toBe("10");
      const small = { title: "Small", body: "x".repeat(200 * KB), kind: "knowledge" };
      expect((await ada.post("/contexts", small)).status).toBe(201);
    }
    const { answer, isRead } = await sendLarge(t, ada, large);
    expect([answer.status, isRead]).toEqual([422, true]);
  },
);

test("what is too large hears so, and nobody without a credential takes any of the memory", async () => {
  await using t = await testApp();
  const { ada } = await deskOf(t);
  using _crowd = crowd(t);
  const huge = { path: "/v1/messages", bytes: 41 * MB };
  expect((await sendLarge(t, ada, huge)).answer.status).toBe(413);
  expect((await sendLarge(t, { ...ada, key: "mw_live_x" }, huge)).answer.status).toBe(401);
});

test("a call takes no memory for bodies once it is stored, however long its result takes", async () => {
  const { promise: gate, resolve: letGo } = Promise.withResolvers<string>();
  await using model = startModelServer({ reply: () => gate });
  await using t = await testApp(modelAt(model));
  t.app.worker?.start();
  const { ada } = await deskOf(t);
  const data = Buffer.alloc(7 * MB, "x").toString("base64");
  const file = { filename: "a.bin", content_type: "application/octet-stream", data };
  const call = ada.post("/v1/messages", { instruction: "Sum up", attachments: [file] });
  await model.received(1);
  using all = t.app.bodyMemory.take("eve", 512 * MB);
  expect(all).toBeDefined();
  letGo("Done.");
  expect((await call).body.status).toBe("done");
});

test("a call that was refused, or has been answered, takes no memory for bodies", async () => {
  await using t = await testApp();
  const { ada } = await deskOf(t);
  for (const body of [{ instruction: "" }, { instruction: "Sum up" }, "{"])
    await ada.post("/v1/messages", body);
  using all = t.app.bodyMemory.take("eve", 512 * MB);
  expect(all).toBeDefined();
});
