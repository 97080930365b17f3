import { closeSync, fsyncSync, openSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import Sqlite from "better-sqlite3";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { type Image, imageFile, whyNoMounts } from "./disks.ts";
import { account, house, inbox } from "./house.ts";
import { closing } from "./load.ts";

const MAILS = 5;
const IMAGE_MB = 256;
/** Each opens the database in its own way; whoever leaves last copies the log back and deletes it. */
const COMMANDS = ["backup", "doctor"];

const reason = await whyNoMounts("loop");
if (reason !== undefined) console.log(`Power cuts after a kill are not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "what a killed server has acknowledged outlives a backup, or the doctor, and a power cut behind it",
  async () => {
    await using image = await imageFile(IMAGE_MB);
    await killedWithMails(image);
    for (const command of COMMANDS) {
      await using copy = await image.copy();
      expect([command, await leftAfter(copy, command)]).toEqual([command, `${MAILS} mails, integrity ok`]);
    }
    expect(await left(image)).toBe(`${MAILS} mails, integrity ok`);
  },
  60_000,
);

/** Leaves on the disk what a server that was killed leaves: its last commits are in the log only. */
async function killedWithMails(image: Image): Promise<void> {
  await using disk = await image.mount();
  await using at = await house({}, join(disk.path, "data"));
  const owner = await account(at, "ann@client.example");
  await using server = await at.start();
  const to = await inbox(server, owner);
  for (let n = 0; n < MAILS; n += 1) {
    const headers = { "Message-ID": `<${n}@client.example>` };
    const raw = rawMail({ from: owner.email, to, text: `Mail ${n}`, headers });
    expect(await deliver(server.smtp, { from: owner.email, to, raw })).toStartWith("250 ");
  }
  server.kill("SIGKILL");
  await server.exited;
}

async function leftAfter(image: Image, command: string): Promise<string> {
  await using disk = await image.mount();
  await using at = await house({}, join(disk.path, "data"));
  const file = command === "backup" ? [join(disk.path, "kept.zip")] : [];
  const { out, err } = await at.cli(command, ...file);
  // The doctor finds a fault or two in a house without a server.
  if (command !== "doctor") expect(err).toBe("");
  expect(out).not.toBe("");
  // Anybody's sync of anything makes the deletion of a file last, but not what was written into another one.
  const other = openSync(join(disk.path, "other"), "w");
  fsyncSync(other);
  closeSync(other);
  await using cut = await image.copy();
  return await left(cut);
}

async function left(image: Image): Promise<string> {
  await using disk = await image.mount();
  using database = closing(new Sqlite(join(disk.path, "data", "mailwright.db")));
  try {
    const count = database.db.prepare("select count(*) from messages").pluck().get() as number;
    return `${count} mails, integrity ${String(database.db.pragma("integrity_check(1)", { simple: true }))}`;
  } catch (error) {
    return (error as Error).message;
  }
}
