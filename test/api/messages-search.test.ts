import { expect, test } from "bun:test";
import { type Caller, testApp } from "../support/app.ts";
import { storeMessages } from "./archive.ts";

test("q finds what stands in subject, sender, instruction or result, in upper or lower case", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await storeMessages(t, ada.user, [
    { subject: "Invoice 42" },
    { sender: "invoices@example.com" },
    { instruction: "Pay this INVOICE" },
    { result: "The invoice is paid." },
    { error: "invoice", reason: "internal", model: "invoice" },
    { subject: "ÄRGER über Größe" },
    { subject: "100% of a_b\\c" },
  ]);
  expect(await subjectsOf(ada, "invoice")).toHaveLength(4);
  expect(await subjectsOf(ada, "iNVOICE 42")).toEqual(["Invoice 42"]);
  expect(await subjectsOf(ada, "ärger ÜBER")).toEqual(["ÄRGER über Größe"]);
  for (const literal of ["100%", "a_b", "b\\c"])
    expect(await subjectsOf(ada, literal)).toEqual(["100% of a_b\\c"]);
  for (const nothing of ["100_", "%2", "' or 1=1 --", "x".repeat(200)])
    expect(await subjectsOf(ada, nothing)).toEqual([]);
});

test("tag finds a #tag of the instruction and a +tag of the recipient, whole", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  await ada.post("/v1/messages", { instruction: "Summarise #Q3 #sales" });
  await storeMessages(t, ada.user, [{ subject: "to +q3", tags: '["q3"]' }, { subject: "q3 #q3" }]);
  for (const tag of ["q3", "Q3", "#q3", "+q3"]) {
    const { items } = (await ada.get(`/messages?tag=${encodeURIComponent(tag)}`)).body;
    expect([tag, items.length]).toEqual([tag, 2]);
  }
  expect((await ada.get("/messages?tag=q")).body.items).toEqual([]);
  expect((await ada.get("/messages?tag=q3&q=summarise")).body.items).toHaveLength(1);
  expect((await ada.get("/messages?tag=sales&status=failed")).body.items).toEqual([]);
});

test("a page of a search looks at 2,000 messages at most, and the pages go through all of them once", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const rare = new Set([0, 1_500, 2_600, 4_400]);
  const rows = Array.from({ length: 4_500 }, (_, index) => ({
    subject: rare.has(index) ? `needle ${index}` : "hay",
  }));
  await storeMessages(t, ada.user, rows);
  const pages: string[][] = [];
  let cursor = "";
  do {
    const { body } = await ada.get(`/messages?q=NEEDLE&limit=50${cursor && `&cursor=${cursor}`}`);
    pages.push(body.items.map(({ subject }: { subject: string }) => subject));
    cursor = body.next_cursor ?? "";
  } while (cursor !== "");
  expect(pages.flat()).toEqual(["needle 4400", "needle 2600", "needle 1500", "needle 0"]);
  expect(pages.length).toBeLessThanOrEqual(3);
  const first = (await ada.get("/messages?q=needle&limit=1")).body;
  expect(first.items).toHaveLength(1);
  const second = (await ada.get(`/messages?q=needle&limit=1&cursor=${first.next_cursor}`)).body;
  expect(second.items[0].subject).toBe("needle 2600");
});

test("a search finds nothing of others, and refuses what is empty, too long or twice there", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  await storeMessages(t, ada.user, [{ subject: "needle", tags: '["needle"]' }]);
  expect((await bob.get("/messages?q=needle")).body.items).toEqual([]);
  expect((await bob.get("/messages?tag=needle")).body.items).toEqual([]);
  for (const query of ["q=", "tag=", `q=${"x".repeat(201)}`, `tag=${"x".repeat(101)}`]) {
    const answer = await ada.get(`/messages?${query}`);
    const path = `query.${query.split("=")[0]}`;
    expect([query, answer.status, answer.body.errors[0].path]).toEqual([query, 422, path]);
  }
});

async function subjectsOf(caller: Caller, q: string): Promise<string[]> {
  const { body } = await caller.get(`/messages?q=${encodeURIComponent(q)}`);
  return body.items.map(({ subject }: { subject: string }) => subject);
}
