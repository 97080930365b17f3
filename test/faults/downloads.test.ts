import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { expect, test } from "bun:test";
import { type Account, account, house, inbox, type ServerProcess } from "./house.ts";
import { untilIdle } from "./load.ts";
import { sha256 } from "../../src/lib/sha256.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { MB } from "../../src/lib/sizes.ts";

const FILE_BYTES = 9 * MB;
const CONNECTIONS = 100;
/** An account has no more than 64 long requests in hand until their answers begin. */
const AT_ONCE = 50;
/** What is checked meanwhile, and the connections themselves: together they ask for a gigabyte. */
const MAX_GROWTH_MB = 200;
const GONE_MS = 10_000;

test.each(["file", "raw mail"] as const)(
  "100 connections that ask for a %s of 10 MB and read nothing cost next to no memory, and leave nothing behind",
  async (kind) => {
    await using at = await house();
    const owner = await account(at, "ann@client.example");
    await using server = await at.start();
    const address = await inbox(server, owner);
    const content = new Uint8Array(FILE_BYTES).map((_, index) => index % 251);
    const raw = rawMail({ from: owner.email, to: address, attachments: [{ filename: "a.bin", content }] });
    expect(await deliver(server.smtp, { from: owner.email, to: address, raw })).toStartWith("250");
    await untilIdle(at);
    const path = await pathOf(server, owner, kind);
    const whole = await (await ask(server, owner, path)).bytes();
    expect(whole.byteLength).toBeGreaterThanOrEqual(FILE_BYTES);
    if (kind === "file") expect(sha256(whole, "hex")).toBe(sha256(content, "hex"));
    const [first, all] = await Promise.all([
      ask(server, owner, path, { method: "HEAD" }),
      ask(server, owner, path, { headers: { range: "bytes=0-9" } }),
    ]);
    expect([first.status, first.headers.get("content-length")]).toEqual([200, `${whole.byteLength}`]);
    expect([all.status, (await all.bytes()).byteLength]).toEqual([200, whole.byteLength]);
    const [before, handles] = [rssMb(server), handlesOf(server)];

    const silent: ReturnType<typeof beginDownload>[] = [];
    while (silent.length < CONNECTIONS) {
      const more = Array.from({ length: AT_ONCE }, () => beginDownload(server, owner, path));
      for (const { head } of more)
        expect((await head).toLowerCase()).toContain(`\r\ncontent-length: ${whole.byteLength}\r\n`);
      silent.push(...more);
    }
    expect(handlesOf(server).length).toBeGreaterThanOrEqual(handles.length + CONNECTIONS);
    // Whoever does read, at their own pace, gets everything.
    const slow = beginDownload(server, owner, path);
    await slow.head;
    expect(sha256(await slow.rest(whole.byteLength), "hex")).toBe(sha256(whole, "hex"));
    expect(rssMb(server) - before).toBeLessThan(MAX_GROWTH_MB);

    for (const { socket } of [...silent, slow]) socket.destroy();
    const deadline = performance.now() + GONE_MS;
    while (newHandles(server, handles).length > 0 && performance.now() < deadline) await Bun.sleep(10);
    expect(newHandles(server, handles)).toEqual([]);
  },
  60_000,
);

function ask(
  server: ServerProcess,
  { api_key }: Account,
  path: string,
  { method = "GET", headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  // A connection of its own, which is closed with its answer: those that are kept are handles too.
  const own = { "x-api-key": api_key, connection: "close" };
  return fetch(`${server.http}${path}`, { method, headers: { ...headers, ...own } });
}

async function pathOf(server: ServerProcess, owner: Account, kind: "file" | "raw mail"): Promise<string> {
  const { items } = (await (await ask(server, owner, "/messages")).json()) as {
    items: { message_id: string; attachments: { url: string }[] }[];
  };
  const [message] = items;
  return kind === "file" ? (message?.attachments[0]?.url ?? "") : `/messages/${message?.message_id}/raw`;
}

/** Asks for something, reads the head of the answer, and nothing more until `rest` of so many bytes is called for. */
function beginDownload(server: ServerProcess, { api_key }: Account, path: string) {
  const { hostname: host, port } = new URL(server.http);
  const socket = connect({ host, port: Number(port) });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${api_key}\r\n\r\n`);
  let came = Buffer.alloc(0);
  const head = Promise.withResolvers<string>();
  socket.on("error", head.reject);
  socket.on("data", (part: Buffer) => {
    came = Buffer.concat([came, part]);
    const end = came.indexOf("\r\n\r\n");
    if (end < 0) return;
    socket.pause();
    socket.removeAllListeners("data");
    head.resolve(came.toString("latin1", 0, end + 2));
    came = came.subarray(end + 4);
  });
  const rest = async (size: number): Promise<Uint8Array> => {
    const parts: Uint8Array[] = [came];
    let left = size - came.byteLength;
    const done = Promise.withResolvers<void>();
    socket.on("close", () => done.reject(new Error(`${left} bytes have not come`)));
    socket.on("data", (part: Buffer) => {
      parts.push(part);
      left -= part.byteLength;
      if (left <= 0) return done.resolve();
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    });
    socket.resume();
    await done.promise;
    return Buffer.concat(parts);
  };
  return { socket, head: head.promise, rest };
}

function rssMb({ pid }: ServerProcess): number {
  const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1_024;
}

/** The files and sockets that it holds open. A thread's own handles are none of them: threads come and go by themselves. */
function handlesOf({ pid }: ServerProcess): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      const target = readlinkSync(`${folder}/${name}`);
      return target.startsWith("anon_inode:") ? [] : [target];
    } catch {
      // It was closed while the others were being looked at.
      return [];
    }
  });
}

/** Which of those it holds open now were not among these. */
function newHandles(server: ServerProcess, before: string[]): string[] {
  const left = [...before];
  return handlesOf(server).filter((target) => {
    const at = left.indexOf(target);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}
