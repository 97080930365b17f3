import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { mkdir, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { keepReserve } from "../../src/db/reserve.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { fill, memoryDisk, whyNoMounts } from "./disks.ts";
import { type Account, account, house, inbox, type ServerProcess } from "./house.ts";
import { closing, faultsOf, type Load, startLoad, untilIdle } from "./load.ts";
import { ask, desk, logged } from "./surfaces.ts";
import { until } from "../support/until.ts";

/** Above what `readyz` asks to be free. */
const DISK_MB = 128;
/** Twice what the server asks for, and more than it makes. */
const MANY_FILES = 250;
const FULL_MS = 15_000;
const RESERVE_BYTES = 16 * 1_048_576;
/** More than the reserve, and less than what has to be free before anything is taken in. */
const LITTLE_BYTES = 40 * 1_048_576;

const reason = await whyNoMounts("tmpfs");
if (reason !== undefined) console.log(`A full disk is not tried: ${reason}`);

async function readyz(server: ServerProcess) {
  const response = await fetch(`${server.http}/readyz`);
  return { status: response.status, body: (await response.json()) as { checks: Record<string, string> } };
}

/** A call is told when to come again, and that the disk is full. */
async function expectCallRefused(
  server: ServerProcess,
  { api_key }: Account,
  inbox_id: string,
): Promise<void> {
  const call = await ask(server, { api_key, to: "" }, "/v1/messages", { instruction: "x", inbox_id });
  expect(call).toMatchObject({ status: 503, retry_after: "30", body: { code: "unavailable" } });
  expect(call.body.detail).toContain("The disk is full");
}

async function refused(load: Load, count: number): Promise<void> {
  const deadline = Date.now() + FULL_MS;
  while (load.refusals.length < count && Date.now() < deadline) await Bun.sleep(20);
  expect(load.refusals.length).toBeGreaterThanOrEqual(count);
}

/** A reserve that is being made has not its size yet. */
async function untilReserve(at: { dir: string }, is: "whole" | "gone"): Promise<void> {
  await untilFile(join(at.dir, "reserve"), is);
}

async function untilFile(path: string, is: "whole" | "gone"): Promise<void> {
  const bytes = is === "whole" ? RESERVE_BYTES : 0;
  const size = () => (existsSync(path) ? statSync(path).size : 0);
  await until(
    async () => size() === bytes,
    FULL_MS,
    async () => `the reserve has ${size()} bytes`,
  );
}

async function inboxId(server: ServerProcess, { api_key }: Account): Promise<string> {
  const headers = { "x-api-key": api_key, "content-type": "application/json" };
  const made = await fetch(`${server.http}/inboxes`, { method: "POST", headers, body: "{}" });
  return ((await made.json()) as { id: string }).id;
}

async function remove(server: ServerProcess, { api_key }: Account, id: string): Promise<number> {
  const headers = { "x-api-key": api_key };
  return (await fetch(`${server.http}/inboxes/${id}`, { method: "DELETE", headers })).status;
}

test.skipIf(reason !== undefined)("half a reserve is not left in the way", async () => {
  await using disk = await memoryDisk(2);
  await writeFile(join(disk.path, "reserve"), "half");
  await using _reserve = await keepReserve(join(disk.path, "reserve"), { error() {}, warn() {}, info() {} });
  expect(existsSync(join(disk.path, "reserve"))).toBe(false);
});

test.skipIf(reason !== undefined)(
  "a full disk is answered with 451, said by readyz, and got over without help",
  async () => {
    await using disk = await memoryDisk(DISK_MB);
    await using sink = await startSmtpSink({ starttls: false });
    await using at = await house(
      { outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [1, 1, 1] } },
      join(disk.path, "data"),
    );
    const owner = await account(at, "ann@client.example");
    await using first = await at.start();
    let server = first;
    const to = [await inbox(server, owner), await inbox(server, owner)];
    const spare = [await inboxId(server, owner), await inboxId(server, owner)];
    expect(await readyz(server)).toMatchObject({ status: 200 });
    await untilReserve(at, "whole");

    const load = startLoad({
      server: () => server.smtp,
      to,
      from: [owner.email, "eve@other.example"],
      bytes: 20_000,
    });
    await load.reached(30);
    const ballast = join(disk.path, "ballast");
    fill(ballast);
    await refused(load, 20);
    // The reserve was given up: nothing comes in, and what takes little can still be done.
    await untilReserve(at, "gone");
    expect(await readyz(server)).toMatchObject({ status: 503 });
    await expectCallRefused(server, owner, spare[1] ?? "");
    expect(await remove(server, owner, spare[0] ?? "")).toBe(204);
    await untilIdle(at);
    expect(await logged(first, "The disk is full;")).toHaveLength(1);

    // Not even a start takes more than there is.
    first.kill("SIGTERM");
    expect(await first.exited).toBe(0);
    await using second = await at.start();
    server = second;
    await refused(load, load.refusals.length + 20);
    expect(await readyz(server)).toMatchObject({ status: 503 });

    // Somebody takes the rest as well.
    fill(ballast);
    await refused(load, load.refusals.length + 20);
    // A server that stops says so to whoever is connected.
    const others = load.refusals.filter((refusal) => !refusal.startsWith("421 4.4.2 Server shutting down"));
    for (const refusal of others) expect(refusal).toStartWith("451 4.3.0 ");
    const full = await readyz(server);
    expect(full.status).toBe(503);
    expect(full.body.checks["disk"]).toBe(`only 0 MB are free in ${at.dir}`);

    // Room for what was begun is none for more.
    const taken = load.acknowledged.size;
    await truncate(ballast, statSync(ballast).size - LITTLE_BYTES);
    await refused(load, load.refusals.length + 20);
    expect(load.acknowledged.size).toBe(taken);
    expect((await readyz(server)).body.checks["disk"]).toMatch(/^only [1-4]\d MB are free/);
    await rm(ballast);
    await load.reached(taken + 30);
    await load.stop();
    await untilIdle(at);
    expect(await readyz(server)).toMatchObject({ status: 200, body: { status: "ok" } });
    expect(await remove(server, owner, spare[1] ?? "")).toBe(204);
    await untilReserve(at, "whole");
    expect(await logged(server, "The disk is full;")).toHaveLength(1);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);

    using database = closing(at.database());
    expect(faultsOf(database.db, load.acknowledged)).toEqual([]);
    expect(sink.mails).toHaveLength(
      database.db.prepare("select count(*) from outgoing_mails").pluck().get() as number,
    );
    expect((await stat(join(at.dir, "mailwright.db"))).size).toBeGreaterThan(0);
    console.log(
      `disk full: ${load.refusals.length} refusals with 451, ${load.acknowledged.size} acknowledged, lost 0, doubled 0`,
    );
  },
  60_000,
);

test.skipIf(reason !== undefined)(
  "a full disk with the database alone gives up a reserve of its own, so that things can be deleted",
  async () => {
    await using disk = await memoryDisk(DISK_MB);
    const path = join(disk.path, "mw.db");
    await using at = await house({ database: { url: `sqlite:${path}` } });
    const owner = await account(at, "ann@client.example");
    await using server = await at.start();
    const spare = [await inboxId(server, owner), await inboxId(server, owner)];
    await untilReserve(at, "whole");
    await untilFile(`${path}-reserve`, "whole");

    const ballast = join(disk.path, "ballast");
    fill(ballast);
    await untilFile(`${path}-reserve`, "gone");
    await expectCallRefused(server, owner, spare[1] ?? "");
    expect(await remove(server, owner, spare[0] ?? "")).toBe(204);
    expect((await readyz(server)).body.checks["disk"]).toEndWith(`MB are free in ${disk.path}`);
    // The other disk has room: its reserve stays.
    await untilReserve(at, "whole");

    await rm(ballast);
    await untilFile(`${path}-reserve`, "whole");
    expect(await remove(server, owner, spare[1] ?? "")).toBe(204);
  },
  30_000,
);

test.skipIf(reason !== undefined)(
  "a disk with room for no more files is said by readyz; a mail that needs one is put off, and taken once there is room",
  async () => {
    await using disk = await memoryDisk(DISK_MB, MANY_FILES);
    await using at = await house({}, join(disk.path, "data"));
    await using server = await at.start();
    const owner = await desk(at, server);
    expect(await readyz(server)).toMatchObject({ status: 200 });
    const large = rawMail({ from: "ann@client.example", to: owner.to, text: "word ".repeat(20_000) });
    const mail = { from: "ann@client.example", to: owner.to, raw: large };
    const files = await makeFiles(disk.path);
    const few = await readyz(server);
    expect(few).toMatchObject({ status: 503 });
    expect(few.body.checks["disk"]).toBe(
      `only 0 more files can be made in ${at.dir} (inodes): delete files on its disk`,
    );
    expect(await deliver(server.smtp, mail)).toStartWith("451 4.3.0 ");
    await rm(files, { recursive: true });
    expect(await deliver(server.smtp, mail)).toStartWith("250 ");
    expect(await readyz(server)).toMatchObject({ status: 200 });
  },
);

/** Makes files until there is room for no more; gives their folder. */
async function makeFiles(path: string): Promise<string> {
  const folder = join(path, "files");
  await mkdir(folder);
  for (let count = 0; count < MANY_FILES; count += 1) {
    try {
      await writeFile(join(folder, String(count)), "");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      return folder;
    }
  }
  throw new Error("There was room for all of them");
}

test.skipIf(reason !== undefined)(
  "a full disk behind a link in the data folder is said by /readyz and doctor, with its folder",
  async () => {
    // Below what has to be free.
    await using disk = await memoryDisk(32);
    await using at = await house();
    const mail = join(at.dir, "mail");
    await symlink(disk.path, mail);
    await using server = await at.start();
    const { body } = await readyz(server);
    expect(body.checks["disk"]).toMatch(/^only \d+ MB are free in .*\/mail$/);
    const { out } = await at.cli("doctor");
    expect(out).toMatch(/disk space of mail.*MB are free in .*\/mail/);
    expect(out).toContain(`MB are free in ${at.dir}.`);
  },
  30_000,
);
