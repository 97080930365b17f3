import { expect, test } from "bun:test";
import { join } from "node:path";
import { openDatabase } from "../../src/db/database.ts";
import { commandLine } from "../support/command-line.ts";

test("suppressed addresses are listed and let go by the command line", async () => {
  await using program = await commandLine();
  await program.run("user", "create", "ada@example.com");
  expect((await program.run("suppression", "list")).out).toContain("Every address gets answers.");
  await suppress(program.dir, "bob@example.org");
  const { data } = await program.json("suppression", "list");
  expect(data).toEqual([
    {
      address: "bob@example.org",
      account: "ada@example.com",
      reason: "550 \u001b[31mwho?\u202e",
      since: 1_800_000_000,
    },
  ]);
  const shown = await program.run("suppression", "list");
  expect([shown.code, shown.out]).toEqual([
    0,
    expect.stringContaining("bob@example.org  (account ada@example.com"),
  ]);
  expect(shown.out.replaceAll("\n", "")).not.toMatch(/\p{C}/u);
  const removed = await program.run("suppression", "remove", "Bob@EXAMPLE.org");
  expect([removed.code, removed.out.trim()]).toEqual([0, "Bob@EXAMPLE.org gets answers again."]);
  const again = await program.run("suppression", "remove", "bob@example.org");
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("mailwright suppression list")]);
});

async function suppress(dir: string, address: string): Promise<void> {
  await using database = openDatabase(`sqlite:${join(dir, "mailwright.db")}`);
  const { id: user_id } = await database.db.selectFrom("users").select("id").executeTakeFirstOrThrow();
  const moment = 1_800_000_000;
  const row = {
    user_id,
    address,
    reason: "550 \u001b[31mwho?\u202e",
    soft_bounces: 0,
    suppressed_at: moment,
    updated: moment,
  };
  await database.write((tx) => tx.insertInto("suppressions").values(row).execute());
}
