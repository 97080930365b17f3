import { describe, expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import { createFileReader, type ReadFor } from "../../src/files/reader.ts";
import type { FileToRead } from "../../src/files/reading.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { voidLeases } from "../../src/jobs/queue.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { type Caller, testApp, type TestApp, setWorker } from "../support/app.ts";
import { fileOf, pdfOfPages, zlibBlanks } from "../support/files.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";
import { MB } from "../../src/lib/sizes.ts";

/** A model that answers nothing to whoever asks for something that hangs, until it is let go. */
function hangingModel() {
  const { promise: gate, resolve: letGo } = Promise.withResolvers<string>();
  const model = startModelServer({
    reply: ({ messages }) => (messages.some(({ content }) => content.includes("hangs")) ? gate : "Quick."),
  });
  return { model, letGo: () => letGo("At last.") };
}

function desks(t: TestApp, names: string[]): Promise<Caller[]> {
  return Promise.all(names.map(async (name) => (await deskOf(t, `${name}@example.com`)).ada));
}

async function hang(caller: Caller, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await caller.post("/v1/messages", { instruction: `${index} hangs`, async: true });
}

async function quick(caller: Caller): Promise<string> {
  const { body } = await caller.post("/v1/messages", { instruction: "Say hello" });
  return body.status;
}

function asked(model: ModelServer): number {
  return model.requests.length;
}

describe.each([
  ["as it is shipped", {}],
  ["with few slots", { routing: { concurrency: 8 } }],
  [
    "without a limit in the plan",
    { plans: { team: { concurrent_routes: 0 } }, routing: { concurrency: 16 } },
  ],
] as const)("%s", (_claim, overrides) => {
  test.each([1, 3])("the calls of %p accounts that hang hold up nobody else", async (hostile) => {
    const { model, letGo } = hangingModel();
    await using _model = model;
    await using t = await testApp(modelAt(model, overrides));
    t.app.worker?.start();
    const enemies = await desks(
      t,
      Array.from({ length: hostile }, (_, index) => `eve${index}`),
    );
    const friends = await desks(t, ["ada", "bob"]);
    for (const enemy of enemies) await hang(enemy, 20);
    await model.received(hostile);
    // The first call of an account, and the ones after it: none of them waits for one of those.
    for (const friend of friends)
      expect([await quick(friend), await quick(friend)]).toEqual(["done", "done"]);
    expect(asked(model)).toBeLessThan(hostile * 20 + 4);
    letGo();
    await t.drain();
  });
});

test("a restart in the middle of that lets nobody wait either", async () => {
  const { model, letGo } = hangingModel();
  await using _model = model;
  await using t = await testApp(modelAt(model, { routing: { concurrency: 8 } }));
  const [eve, ada] = (await desks(t, ["eve", "ada"])) as [Caller, Caller];
  await hang(eve, 20);
  // What a process that was killed had claimed: as much as there was.
  await t.app.db.updateTable("jobs").set({ status: "running", lease_until: 1, attempts: 1 }).execute();
  await t.app.write((tx) => voidLeases(tx));
  const { body: waiting } = await ada.post("/v1/messages", { instruction: "Say hello", async: true });
  await using worker = createWorker(t.app, jobHandlers(t.app));
  setWorker(t.app, worker);
  const ended = t.app.finished.wait(waiting.message_id, 20_000);
  worker.start();
  expect(await ended).toBeTruthy();
  expect(await quick(ada)).toBe("done");
  letGo();
  await worker.drain();
});

test("runs that hold more memory than there is wait in the table, and small ones go past them", async () => {
  const { model, letGo } = hangingModel();
  await using _model = model;
  await using t = await testApp(modelAt(model, { routing: { memory_mb: 64 } }));
  t.app.worker?.start();
  const [eve, ada] = (await desks(t, ["eve", "ada"])) as [Caller, Caller];
  const data = Buffer.alloc(6 * MB, "x").toString("base64");
  const large = { instruction: "hangs", async: true };
  const attachments = [{ filename: "a.bin", content_type: "application/octet-stream", data }];
  for (let index = 0; index < 4; index++) await eve.post("/v1/messages", { ...large, attachments });
  await model.received(1);
  expect(await quick(ada)).toBe("done");
  // Each counts with 26 MB, and an account has half of the 64 MB with more than one.
  const running = await t.app.db
    .selectFrom("jobs")
    .select("weight")
    .where("status", "=", "running")
    .execute();
  expect(running).toEqual([{ weight: 26 * MB }]);
  letGo();
  await t.drain();
});

describe("files", () => {
  const slow = fileOf("slow.pdf", pdfOfPages([deflateSync(zlibBlanks(400))], "[/FlateDecode /FlateDecode]"));
  const good = fileOf("good.txt", "read at once", "text/plain");
  const { signal } = new AbortController();

  test.each([1, 3])(
    "of %p accounts that take long to read hold up no other by more than one each",
    async (hostile) => {
      await using reader = createFileReader({ read_file_within_ms: 300, pauses_ms: [0] });
      const order: string[] = [];
      const enemies = Array.from({ length: hostile }, (_, index) =>
        Promise.all(
          Array.from({ length: 2 }, async () => {
            await reader.read([slow, slow], signal, { account: `eve${index}` });
            order.push("slow");
          }),
        ),
      );
      const [reading] = await reader.read([good], signal, { account: "ada" });
      order.push("ada");
      expect(reading).toMatchObject({ text: "read at once" });
      // Not one of those messages has been read: it would have taken two files.
      expect(order.slice(0, 1)).toEqual(["ada"]);
      await Promise.all(enemies);
    },
  );

  test("of strangers that take long to read hold up neither those of the household nor those of others", async () => {
    await using reader = createFileReader({ read_file_within_ms: 300, pauses_ms: [0] });
    const order: string[] = [];
    const read = async (name: string, files: FileToRead[], from: ReadFor) => {
      await reader.read(files, signal, from);
      order.push(name);
    };
    const strangers = [1, 2, 3].map(() =>
      read("strangers", [slow, slow], { account: "ada", strangers: true }),
    );
    await read("household", [good, good, good], { account: "ada" });
    await read("bob", [good], { account: "bob" });
    expect(order).toEqual(["household", "bob"]);
    await Promise.all(strangers);
  });
});
