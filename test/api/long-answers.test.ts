import { expect, test } from "bun:test";
import { createHttp } from "../../src/api.ts";
import { testApp } from "../support/app.ts";
import { deskOf } from "./desk.ts";
import { MB } from "../../src/lib/sizes.ts";

/** So many answers of each kind, of about a megabyte, are asked for. */
const ANSWERS = 200;

/** Somebody whose message has a result of a megabyte, and whose contexts have as much together. */
async function room() {
  const t = await testApp({ llm: { kind: "demo" } });
  const { ada } = await deskOf(t);
  const { body } = await ada.post("/v1/messages", { instruction: "Sum up" });
  await t.app.db
    .updateTable("messages")
    .set({ result: "é".repeat(MB / 2) })
    .execute();
  for (const title of ["One", "Two", "Three", "Four"])
    await ada.post("/contexts", { title, body: "y".repeat(250_000), kind: "knowledge" });
  const http = createHttp(t.app, { ready: async () => ({ database: "ok" }) });
  /** Asks for an answer, and reads nothing of it. */
  const ask = (path: string, key = ada.key): Promise<Response> =>
    http.handle(new Request(`http://mw.test${path}`, { headers: { "x-api-key": key } }));
  const { message_id, conversation_id } = body;
  return { ...t, ada, ask, message_id, conversation_id };
}

test.each([
  "/messages",
  "/messages/:message",
  "/v1/messages/:message",
  "/conversations/:conversation",
  "/contexts",
])(
  "who asks for %s again and again, and reads nothing, is refused before memory is full, and nobody else is",
  async (route) => {
    await using t = await room();
    const bob = await t.as("bob@example.com");
    const path = route.replace(":message", t.message_id).replace(":conversation", t.conversation_id);
    const unread: Response[] = [];
    for (let asked = 0; asked < ANSWERS; asked += 1) {
      const answer = await t.ask(path);
      if (answer.status !== 200) break;
      unread.push(answer);
    }
    expect(unread.length).toBeGreaterThan(50);
    expect(unread.length).toBeLessThan(ANSWERS);
    const refused = await t.ada.get(path);
    expect([refused.status, refused.body.code]).toEqual([503, "unavailable"]);
    expect(refused.headers.get("retry-after")).toBe("10");
    // What is short is always answered.
    expect((await t.ada.get("/inboxes")).status).toBe(200);
    expect((await bob.get("/contexts")).status).toBe(200);

    // One that is read to its end, and one that is left, make room for two.
    const [first, second, ...rest] = unread;
    expect((await first?.bytes())?.byteLength).toBeGreaterThan(MB * 0.9);
    await second?.body?.cancel();
    rest.push(await t.ask(path), await t.ask(path));
    expect(rest.map(({ status }) => status)).toEqual(rest.map(() => 200));
    await Promise.all(rest.map((answer) => answer.body?.cancel()));
    expect((await t.ada.get(path)).status).toBe(200);
  },
  60_000,
);
