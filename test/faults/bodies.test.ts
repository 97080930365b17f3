import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { memoryGroup } from "./memory-group.ts";
import { type Account, account, house, inbox, type ServerProcess } from "./house.ts";
import { MB } from "../../src/lib/sizes.ts";

const CALLS = 32;
/** With room for the mails that may come at the same time. */
const MEMORY_MB = 1_300;
/** What the unit and the compose file give, caches of files included. */
const LIMIT_MB = 2_048;

/** The largest call there may be: 24 MB of files, 33 MB as it is sent. */
const data = Buffer.alloc(8 * MB, "x").toString("base64");
const file = { filename: "a.bin", content_type: "application/octet-stream", data };
const LARGE = JSON.stringify({ instruction: "Sum up.", async: true, attachments: [file, file, file] });
const SMALL = JSON.stringify({ instruction: "Sum up.", async: true, content: "y".repeat(200_000) });

test.each([1, 8])(
  "32 of the largest calls at once, of %p accounts, stay inside the memory that is promised, and small ones pass",
  async (accounts) => {
    await using at = await house({ llm: { kind: "demo" } });
    const owners: Account[] = [];
    for (let index = 0; index < accounts; index += 1)
      owners.push(await account(at, `ann${index}@client.example`));
    const limited = memoryGroup(LIMIT_MB);
    using group = typeof limited === "string" ? undefined : limited;
    if (typeof limited === "string") console.log(`Calls without a real limit of memory: ${limited}`);
    await using server = await at.start();
    group?.add(server.pid);
    const keys = owners.map(({ api_key }) => api_key);
    for (const owner of owners) await inbox(server, owner);
    const answers = await Promise.all(
      Array.from({ length: CALLS }, async (_, index) => {
        const key = keys[index % accounts] ?? "";
        const [large, small] = await Promise.all([send(server, key, LARGE), send(server, key, SMALL)]);
        expect(small.status).toBe(202);
        return large;
      }),
    );
    const refused = answers.filter(({ status }) => status !== 202);
    for (const { status, headers, body } of refused) {
      expect([status, body.code]).toEqual([503, "unavailable"]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    }
    expect(refused.length).toBeLessThan(CALLS);
    expect(peakMb(server)).toBeLessThan(MEMORY_MB);
    // Whoever was refused has room once the others are done.
    for (const key of keys) expect((await send(server, key, LARGE)).status).toBe(202);
    expect(peakMb(server)).toBeLessThan(MEMORY_MB);
    // With the processes that read the calls.
    expect(group?.outOfMemory() ?? 0).toBe(0);
  },
  180_000,
);

async function send(server: ServerProcess, key: string, text: string) {
  const response = await fetch(`${server.http}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: text,
  });
  const { status, headers } = response;
  return { status, headers, body: (await response.json()) as { code?: string } };
}

function peakMb({ pid }: ServerProcess): number {
  const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1_024;
}
