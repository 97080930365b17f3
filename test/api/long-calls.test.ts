import { createHash } from "node:crypto";
import { expect, test } from "bun:test";
import { readCall } from "../../src/http/call-body.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { deskOf } from "./desk.ts";
import { MB } from "../../src/lib/sizes.ts";

const DEMO = { llm: { kind: "demo" as const } };
const FILE = { filename: "a.bin", content_type: "application/octet-stream" };
const BYTES = Buffer.alloc(MB, "Mailwright ");
const DATA = BYTES.toString("base64");

/** The sizes of the bodies that the thread reads from now on. */
function sizesOnThread(t: TestApp): number[] {
  const sizes: number[] = [];
  const { bodies } = t.app;
  t.app.bodies = {
    run: (turn, pack) =>
      bodies.run(turn, async () => {
        const job = await pack();
        sizes.push((job.input as Uint8Array).byteLength);
        return job;
      }),
    [Symbol.asyncDispose]: () => bodies[Symbol.asyncDispose](),
  };
  return sizes;
}

test("a long call is read by a thread, a short one at once, and the files of both arrive whole", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const sizes = sizesOnThread(t);
  for (const data of [DATA, DATA.replaceAll(/.{64}/g, "$&\r\n"), DATA.replaceAll("=", ""), "TWFpbA=="]) {
    const call = { instruction: "Read it", attachments: [{ ...FILE, data }] };
    expect((await ada.post("/v1/messages", call)).body.status).toBe("done");
  }
  expect(sizes.map((size) => size > MB)).toEqual([true, true, true]);
  const files = await t.app.db.selectFrom("attachments").select("size").orderBy("id").execute();
  expect(files.map(({ size }) => size)).toEqual([MB, MB, MB, 4]);
  const { body } = await ada.get("/messages?limit=2");
  const { url } = body.items[1].attachments[0];
  const response = await t.request(url, { headers: { "x-api-key": ada.key } });
  expect(response.body === BYTES.toString()).toBe(true);
});

test("a long call that the machine gives no time to be read can be sent again", async () => {
  await using t = await testApp();
  const { ada } = await deskOf(t);
  t.app.bodies = { ...t.app.bodies, run: async () => ({ ok: false, problem: "held_up" }) };
  const { status, body } = await ada.post("/v1/messages", { instruction: "x", content: "y".repeat(MB) });
  expect([status, body.code, body.detail]).toEqual([
    503,
    "unavailable",
    "The server is too busy to read the body.",
  ]);
});

test("a long call that is wrong is refused in the words for a short one", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const long = "x".repeat(MB);
  for (const [broken, detail] of [
    [`{"instruction":"x","content":"${long}"`, "The body is not valid JSON."],
    [`["${long}"]`, "The body must be a JSON object."],
    [
      `{"a":"${long}","b":${"[".repeat(40)}${"]".repeat(40)}}`,
      "The body is nested more than 32 levels deep.",
    ],
  ])
    expect((await ada.post("/v1/messages", broken)).body).toMatchObject({ code: "validation_error", detail });
});

test.each([
  ["blanks as data", { data: " ".repeat(39 * MB) }, "data", "too_large"],
  ["data of more than 10 MB", { data: Buffer.alloc(10 * MB + 1).toString("base64") }, "data", "too_large"],
  ["long data that is not base64", { data: `${DATA.slice(0, -4)}!AAA` }, "data", "invalid_base64"],
  ["padding and nothing else", { data: "=".repeat(MB) }, "data", "invalid_base64"],
  [
    "a type with blanks behind",
    { data: "", content_type: `a/b${" ".repeat(39 * MB)}` },
    "content_type",
    "too_long",
  ],
])("%s is refused for what it is", async (_what, file, member, code) => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const { status, body } = await ada.post("/v1/messages", {
    instruction: "x",
    attachments: [{ ...FILE, ...file }],
  });
  expect([status, body.errors]).toEqual([
    422,
    [expect.objectContaining({ path: `body.attachments.0.${member}`, code })],
  ]);
});

test("what is validated and fingerprinted of a call is short, however long the call is", () => {
  const long = "x".repeat(3 * MB);
  const call = { instruction: long, content: long, zz: { deep: [long] } };
  const attachments = [{ filename: long, content_type: long, data: DATA }];
  const read = readCall(Buffer.from(JSON.stringify({ ...call, attachments })));
  if ("refusal" in read) throw new Error(read.refusal);
  const { content, ...rest } = read.body as { content: string };
  // What is too long stays too long: see `MAX_CONTENT_CHARS` of `pipeline/call.ts`.
  expect(content).toHaveLength(1_000_001);
  expect(JSON.stringify(rest).length).toBeLessThan(100_000);
  const sha256 = createHash("sha256").update(BYTES).digest("hex");
  expect(rest).toMatchObject({ attachments: [{ data: sha256 }] });
});

test("a retry of a call with files is known by what they hold", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const send = (data: string) =>
    ada.post(
      "/v1/messages",
      { instruction: "x", attachments: [{ ...FILE, data }] },
      { "idempotency-key": "k" },
    );
  const first = await send(DATA);
  const again = await send(DATA.replaceAll(/.{76}/g, "$&\n"));
  expect([again.headers.get("idempotent-replayed"), again.body.message_id]).toEqual([
    "true",
    first.body.message_id,
  ]);
  const other = await send(`B${DATA.slice(1)}`);
  expect([other.status, other.body.code]).toEqual([422, "idempotency_key_reuse"]);
});
