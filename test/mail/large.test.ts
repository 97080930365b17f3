import { expect, test } from "bun:test";
import { readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { mailroom } from "../support/mailroom.ts";

const FILE = "A line of the report.\n".repeat(50_000);
const attachments = [{ filename: "report.txt", content_type: "text/plain", content: FILE }];

test("keeps a large mail and its file in a segment, reads it for the run, and gives the file back", async () => {
  await using t = await mailroom();
  await t.send({ attachments });
  await t.drain();
  const row = await t.app.db.selectFrom("raw_mails").selectAll().executeTakeFirstOrThrow();
  expect(row).toMatchObject({ bytes: null, segment: 1, segment_offset: 0 });
  const [message] = await t.activity();
  expect(message.status).toBe("done");
  expect(message.attachments[0]).toMatchObject({ filename: "report.txt", size: FILE.length });
  const file = await t.owner.get(message.attachments[0].url);
  expect(file.body).toBe(FILE);
});

test("writes nothing for a large mail that is refused, and keeps one copy for several inboxes", async () => {
  await using t = await mailroom();
  const closed = await t.owner.post("/inboxes", { allowlist_senders: ["@friends.example"] });
  const second = await t.owner.post("/inboxes", {});
  await t.send({ from: "eve@example.net", rcpt: closed.body.address, attachments });
  expect(await readdir(join(t.app.config.data.dir, "mail"))).toEqual([]);
  await t.send({ rcpt: [t.inbox.address, second.body.address], attachments });
  const { size } = await t.app.db.selectFrom("raw_mails").select("size").executeTakeFirstOrThrow();
  expect((await stat(join(t.app.config.data.dir, "mail", "00000001.seg"))).size).toBe(size);
  expect(await t.activity()).toHaveLength(3);
});

test("asks the sender to try again when the segment cannot be written, and takes the mail when it can", async () => {
  await using t = await mailroom();
  const folder = join(t.app.config.data.dir, "mail");
  await rename(folder, `${folder}-away`);
  await writeFile(folder, "");
  expect(await t.send({ attachments })).toStartWith("451 4.3.0");
  expect(await t.activity()).toEqual([]);
  await rm(folder);
  await rename(`${folder}-away`, folder);
  expect(await t.send({ attachments })).toStartWith("250");
  await t.drain();
  expect(await t.activity()).toMatchObject([{ status: "done" }]);
});
