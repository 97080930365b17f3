import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type LogEnd, readLogEnd } from "../../src/db/lost-commits.ts";
import { rawMail } from "../support/mails.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { damage, logged, takenBack, warnings } from "./surfaces.ts";
import { until } from "../support/until.ts";

const MAILS = 40;

async function send({ smtp }: ServerProcess, to: string, count = MAILS): Promise<void> {
  await using client = await smtpClient(smtp);
  await client.say("EHLO client.example");
  for (let sent = 0; sent < count; sent += 1) {
    await client.say("MAIL FROM:<ada@example.com>");
    await client.say(`RCPT TO:<${to}>`);
    await client.say("DATA");
    const headers = { "Message-ID": `<${crypto.randomUUID()}@example.com>` };
    const raw = rawMail({ from: "ada@example.com", to, text: `Mail ${sent}`, headers });
    expect(await client.say(`${raw.toString("latin1")}\r\n.`)).toStartWith("250");
  }
}

/** Changes the database of a server that has stopped. */
function change(at: House, statement: string, ...values: string[]): void {
  const database = at.database();
  try {
    expect(database.prepare(statement).run(...values).changes).toBe(1);
  } finally {
    database.close();
  }
}

/** A data folder whose server was killed after so many mails, and the key of its owner. */
async function killed(at: House): Promise<string> {
  const owner = await account(at, "ada@example.com");
  await using server = await at.start();
  await send(server, await inbox(server, owner));
  server.kill("SIGKILL");
  await server.exited;
  return owner.api_key;
}

async function activity(server: ServerProcess, api_key: string) {
  const response = await fetch(`${server.http}/messages?limit=100`, { headers: { "x-api-key": api_key } });
  return { status: response.status, items: ((await response.json()) as { items: never[] }).items ?? [] };
}

/** A byte of the page in this frame of a log (SQLite's file format, section 4.1). */
function frameAt(log: Buffer, index: number): number {
  return 32 + Math.floor(index) * (24 + log.readUInt32BE(8)) + 1_000;
}

async function flip(file: string, placeIn: (log: Buffer) => number): Promise<void> {
  const bytes = await readFile(file);
  const place = placeIn(bytes);
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
  await writeFile(file, bytes);
}

/** Kills a server whose log holds what is not copied into its database yet, and says where that log ends. */
async function killedAmidLog(at: House, path: string): Promise<{ api_key: string; end: LogEnd }> {
  const owner = await account(at, "ada@example.com");
  return killAmidLog(at, owner, path);
}

/** The same, of a house with an account. All may have been copied just before. */
async function killAmidLog(
  at: House,
  owner: Awaited<ReturnType<typeof account>>,
  path: string,
): Promise<{ api_key: string; end: LogEnd }> {
  for (let count = 0; count < 5; count += 1) {
    await using server = await at.start();
    await send(server, await inbox(server, owner));
    server.kill("SIGKILL");
    await server.exited;
    const end = readLogEnd(path);
    if (end !== undefined && end.frames > end.copied) return { api_key: owner.api_key, end };
  }
  throw new Error("The log was empty");
}

/** In the midst of what is not copied yet: what is copied may be damaged without loss. */
function inMiddle(log: Buffer, end: LogEnd): number {
  return frameAt(log, Math.floor((end.copied + end.frames) / 2));
}

describe("the log of the database after a kill", () => {
  test.each([
    ["in the middle of what is not copied yet", inMiddle],
    ["in the last page", (log: Buffer, end: LogEnd) => frameAt(log, end.frames - 1)],
    ["in its head", () => 9],
  ])(
    "with one bit flipped %s: that commits are lost is said by the log, /readyz and doctor",
    async (_where, place) => {
      await using at = await house();
      const path = join(at.dir, "mailwright.db");
      const { api_key, end } = await killedAmidLog(at, path);
      await flip(`${path}-wal`, (log) => place(log, end));
      const note = join(at.dir, "mailwright.db-lost");
      {
        await using server = await at.start();
        expect((await activity(server, api_key)).status).toBe(200);
        await logged(server, "commits that were acknowledged are missing from the database's log");
        expect((await warnings(server)).lost).toContain(`Then delete ${note}.`);
        server.kill("SIGTERM");
        await server.exited;
      }
      expect((await at.cli("doctor")).out).toContain("Commits were lost.");
      const sound = await readFile(path);
      damage(at, "webhook_endpoints");
      expect((await at.cli("doctor")).out).toMatch(/fail {2}database: The database is damaged/);
      await writeFile(path, sound);
      await rm(note);
      await using again = await at.start();
      expect(await warnings(again)).not.toHaveProperty("lost");
    },
  );

  test("with one bit flipped: whoever opens the database first notes that commits are lost", async () => {
    await using at = await house();
    const path = join(at.dir, "mailwright.db");
    const { end } = await killedAmidLog(at, path);
    await flip(`${path}-wal`, (log) => inMiddle(log, end));
    const left = join(at.dir, "..", "left");
    await cp(at.dir, left, { recursive: true });
    const archive = join(at.dir, "..", "x.zip");
    const firsts = [
      ["doctor"],
      ["dns", "check", "mw.test"],
      ["queue", "list"],
      ["migrate"],
      ["migrate", "status"],
      ["backup", archive],
    ];
    for (const first of firsts) {
      await rm(at.dir, { recursive: true });
      await cp(left, at.dir, { recursive: true });
      const { err } = await at.cli(...first);
      expect([first, err]).toEqual([first, expect.stringContaining("are missing from the database's log")]);
      expect([first, existsSync(`${path}-lost`)]).toEqual([first, true]);
    }
    await using server = await at.start();
    expect((await warnings(server)).lost).toContain("could not be read back");
  }, 60_000);

  test("behind a link to the database, with one bit flipped: that commits are lost is said as well", async () => {
    await using at = await house();
    const owner = await account(at, "ada@example.com");
    const [path, real] = [join(at.dir, "mailwright.db"), join(at.dir, "..", "disk", "real.db")];
    await mkdir(dirname(real));
    await rename(path, real);
    await symlink(real, path);
    const { end } = await killAmidLog(at, owner, real);
    await flip(`${real}-wal`, (log) => inMiddle(log, end));
    await using server = await at.start();
    await logged(server, "commits that were acknowledged are missing from the database's log");
    expect((await warnings(server)).lost).toContain(`Then delete ${real}-lost.`);
  });

  test("as the kill left it: everything is there, and nothing is said", async () => {
    await using at = await house();
    const api_key = await killed(at);
    await using server = await at.start();
    expect((await activity(server, api_key)).items).toHaveLength(MAILS);
    expect(server.log()).not.toContain("missing from the database's log");
    expect(await warnings(server)).not.toHaveProperty("lost");
    expect(existsSync(join(at.dir, "mailwright.db-lost"))).toBe(false);
  });
});

describe("a damaged row", () => {
  test("of the messages is shown with what can be read of it, beside all others", async () => {
    await using at = await house();
    const owner = await account(at, "ada@example.com");
    {
      await using server = await at.start();
      await send(server, await inbox(server, owner), 3);
      server.kill("SIGTERM");
      await server.exited;
    }
    change(
      at,
      "update messages set steps = ?, tags = ?, auth = ?, command = ? where id = (select min(id) from messages)",
      '[{"ty',
      "[",
      '{"spf',
      "{",
    );
    await using server = await at.start();
    const { status, items } = await activity(server, owner.api_key);
    expect(status).toBe(200);
    expect(items).toHaveLength(3);
    expect(JSON.stringify(items.at(-1))).toContain("the database is damaged there");
    const search = await fetch(`${server.http}/messages?tag=x`, { headers: { "x-api-key": owner.api_key } });
    expect(search.status).toBe(200);
  });

  test("of any table keeps no list from being shown, and mail is taken", async () => {
    const damages = [
      "update messages set state = 'dond' where id = (select min(id) from messages)",
      "update users set plan = 'teax'",
      "update inboxes set mcp_connection_ids = '[\"', scope = '{', inbound_policy = '{\"'",
      "update webhook_endpoints set event_types = '['",
      "update schedules set pattern = 'x 9 * * *' where id = (select min(id) from schedules)",
      "update schedules set timezone = 'Mars/Olympus' where id = (select max(id) from schedules)",
    ];
    await using at = await house();
    const owner = await account(at, "ada@example.com");
    let to = "";
    {
      await using server = await at.start();
      to = await inbox(server, owner);
      const bodies = [
        ["/v1/webhooks", { url: "https://hooks.example.org/x", event_types: ["message.completed"] }],
        ["/v1/schedules", { instruction: "Hello.", every: "daily" }],
        ["/v1/schedules", { instruction: "Hello.", every: "weekly" }],
      ] as const;
      for (const [path, body] of bodies) {
        const made = await fetch(`${server.http}${path}`, {
          method: "POST",
          headers: { "x-api-key": owner.api_key, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        expect(made.status).toBe(201);
      }
      await send(server, to, 2);
      server.kill("SIGTERM");
      await server.exited;
    }
    for (const statement of damages) change(at, statement);
    await using server = await at.start();
    const headers = { "x-api-key": owner.api_key };
    for (const path of [
      "/messages",
      "/conversations",
      "/inboxes",
      "/connections",
      "/contexts",
      "/v1/webhooks",
      "/v1/schedules",
      "/auth/me",
    ])
      expect([path, (await fetch(`${server.http}${path}`, { headers })).status]).toEqual([path, 200]);
    await send(server, to, 1);
  });

  test("of the queue is set aside and said, and the others are done", async () => {
    await using at = await house();
    const owner = await account(at, "ada@example.com");
    const held = ["queue", "hold", "route_message"];
    {
      await using server = await at.start();
      const to = await inbox(server, owner);
      expect(await at.cli(...held)).toMatchObject({ code: 0 });
      await send(server, to, 3);
      server.kill("SIGTERM");
      await server.exited;
    }
    change(
      at,
      "update jobs set payload = ? where id = (select min(id) from jobs where kind = 'route_message')",
      '{"mess',
    );
    await using server = await at.start();
    expect(await at.cli("queue", "release", "route_message")).toMatchObject({ code: 0 });
    const done = async () =>
      (await activity(server, owner.api_key)).items.filter(({ status }) => status === "done").length;
    await until(async () => (await done()) >= 2);
    const third = async (): Promise<{ status: string; reply_status: string }> => {
      const { items } = await activity(server, owner.api_key);
      return items.find(({ status }) => status !== "done") ?? { status: "done", reply_status: "" };
    };
    // What it was for has failed, and its sender is told.
    await until(async () => (await third()).reply_status === "sent");
    expect(await third()).toMatchObject({
      status: "failed",
      reason: "internal",
      error: expect.stringContaining("a fault of this server"),
    });
    const me = await fetch(`${server.http}/auth/me`, { headers: { "x-api-key": owner.api_key } });
    expect(await me.json()).toMatchObject({ credits: { used: 2 } });
    await logged(server, "What it is for cannot be read: the database is damaged there");
    expect((await warnings(server)).dead).toContain("1 job was given up");
    const listed = await at.cli("queue", "list", "--state", "dead", "--json");
    expect(listed).toMatchObject({ code: 0, err: "" });
    const [job] = (JSON.parse(listed.out) as { jobs: { id: string; kind: string; about: string }[] }).jobs;
    expect([job?.kind, job?.about]).toEqual([
      "route_message",
      "something that cannot be read any more: the database is damaged there",
    ]);
    const retried = await at.cli("queue", "retry", job?.id ?? "");
    expect([retried.code, retried.err]).toEqual([
      1,
      expect.stringContaining("There is nothing left of this job"),
    ]);
    expect(await at.cli("queue", "drop", job?.id ?? "")).toMatchObject({ code: 0 });
    expect(await third()).toMatchObject({ status: "failed", reason: "internal" });
    await takenBack(server, "dead");
  });
});
