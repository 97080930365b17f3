import { expect } from "bun:test";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { until } from "../support/until.ts";
import { account, type House, inbox, type ServerProcess } from "./house.ts";
import { closing } from "./load.ts";

const OWNER = "ann@client.example";
const PATIENCE_MS = 10_000;

/** Everything an owner sees of one server process. */
export interface Desk {
  to: string;
  api_key: string;
}

export async function desk(at: House, server: ServerProcess): Promise<Desk> {
  const owner = await account(at, OWNER);
  return { api_key: owner.api_key, to: await inbox(server, owner) };
}

let sent = 0;

/** Sends one mail of the owner, with more text if it is to be large; gives the last reply and the mail's Message-ID. */
export async function mail(
  server: ServerProcess,
  { to }: Desk,
  more = "",
): Promise<{ id: string; reply: string }> {
  const id = `fault-${(sent += 1)}-${process.pid}@client.example`;
  const raw = rawMail({
    from: OWNER,
    to,
    text: `Sum up ${id}.${more}`,
    headers: { "Message-ID": `<${id}>` },
  });
  return { id, reply: await deliver(server.smtp, { from: OWNER, to, raw }) };
}

export interface Seen {
  status: number;
  retry_after: string | null;
  // Tests read whatever the server said.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

export async function ask(
  server: ServerProcess,
  { api_key }: Desk,
  path: string,
  body?: object,
): Promise<Seen> {
  const response = await fetch(`${server.http}${path}`, {
    method: body ? "POST" : "GET",
    headers: { "x-api-key": api_key, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return {
    status: response.status,
    retry_after: response.headers.get("retry-after"),
    body: response.status === 204 ? undefined : await response.json(),
  };
}

export async function readyz(server: ServerProcess): Promise<{ status: number; database: string }> {
  const response = await fetch(`${server.http}/readyz`);
  const { checks } = (await response.json()) as { checks: { database: string } };
  return { status: response.status, database: checks.database };
}

/** What `/readyz` says that needs care, by its name. */
export async function warnings(server: ServerProcess): Promise<Record<string, string>> {
  const response = await fetch(`${server.http}/readyz`);
  return ((await response.json()) as { warnings: Record<string, string> }).warnings;
}

/** Resolves once `/readyz` no longer says it: what took long to read may be said again for a while. */
export async function takenBack(server: ServerProcess, name: string): Promise<void> {
  await until(async () => !(name in (await warnings(server))));
}

/** Mail is put off, calls are told when to come again and what is to be done, and readyz says the same. */
export async function expectRefusals(server: ServerProcess, at: Desk, words: string): Promise<void> {
  expect((await mail(server, at)).reply).toStartWith("451 4.3.0 ");
  const call = await ask(server, at, "/v1/messages", { instruction: "x" });
  expect(call).toMatchObject({ status: 503, retry_after: "30", body: { code: "unavailable" } });
  expect(call.body.detail).toContain(words);
  expect(await readyz(server)).toMatchObject({ status: 503, database: expect.stringContaining(words) });
}

/** Lines of the log that say `words`. */
export function linesWith(server: ServerProcess, words: string): string[] {
  return server
    .log()
    .split("\n")
    .filter((line) => line.includes(words));
}

/**
 * Resolves, when the log has said `words` so often, to the lines that say it. An answer may well be read before the line
 * that was written first: they come by different ways.
 */
export async function logged(server: ServerProcess, words: string, times = 1): Promise<string[]> {
  const deadline = Date.now() + PATIENCE_MS;
  while (linesWith(server, words).length < times) {
    if (Date.now() > deadline) throw new Error(`The log never said ${words}:\n${server.log()}`);
    await Bun.sleep(20);
  }
  return linesWith(server, words);
}

/** What a failing disk makes of the first page of a table. */
export function damage(at: House, table: string): void {
  using database = closing(at.database());
  database.db.pragma("wal_checkpoint(TRUNCATE)");
  const size = database.db.pragma("page_size", { simple: true }) as number;
  const root = database.db.prepare("select rootpage from sqlite_schema where name = ?").pluck();
  const file = openSync(join(at.dir, "mailwright.db"), "r+");
  writeSync(file, Buffer.alloc(512, 0xff), 0, 512, ((root.get(table) as number) - 1) * size);
  closeSync(file);
}
