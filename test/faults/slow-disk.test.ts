import { expect, test } from "bun:test";
import { type House, house, type ServerProcess } from "./house.ts";
import { closing, faultsOf, startLoad, untilIdle } from "./load.ts";
import { ask, desk, logged } from "./surfaces.ts";
import { deliver } from "../support/smtp-client.ts";
import { rawMail } from "../support/mails.ts";
import { slowDisk, whyNoSlowDisk } from "./slow-disk.ts";

/** How long a sync takes on a busy hard disk, or on a network drive. */
const SYNC_MS = 200;
const CLIENTS = 12;

const reason = whyNoSlowDisk();
if (reason !== undefined) console.log(`A slow disk is not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "on a slow disk mails share their commits, the server goes on answering and says what is the matter, and nothing is lost",
  async () => {
    await using disk = await slowDisk(SYNC_MS);
    // No name server: the doctor need not wait for one.
    await using at = await house({ dns: { servers: ["127.0.0.1:9"] } });
    const server = await at.start(disk.env);
    await using _server = server;
    const owner = await desk(at, server);
    const begin = () =>
      startLoad({
        server: () => server.smtp,
        to: [owner.to],
        from: ["ann@client.example"],
        clients: CLIENTS,
      });
    await disk.slow();
    const load = begin();
    await load.reached(4 * CLIENTS);
    const mails = load.acknowledged.size;
    const syncs = await disk.syncs();
    // Alone, each mail would need three: to be taken, to be begun, and to be done.
    expect(syncs).toBeLessThan(mails);
    for (const path of ["/livez", "/auth/me", "/messages"])
      expect((await ask(server, owner, path)).status).toBe(200);
    await logged(server, "The disk is slow: a commit takes");
    await load.stop();
    expect(await slowWords(server)).toMatch(
      /a commit takes \d{3,} ms, .*\. Give the data folder a faster disk/,
    );
    expect(await doctorsWords(at, disk.env)).toMatchObject({
      verdict: "warn",
      mend: expect.stringContaining("Give the data folder a faster disk"),
    });
    await disk.heal();
    while ((await slowWords(server)) !== undefined);
    expect(await logged(server, "the disk is quick again")).toHaveLength(1);
    expect(await logged(server, "The disk is slow")).toHaveLength(1);
    await disk.slow();
    const more = begin();
    await more.reached(CLIENTS);
    server.kill("SIGKILL");
    await server.exited;
    await more.stop();
    expect([...load.refusals, ...more.refusals]).toEqual([]);
    await using last = await at.start();
    await untilIdle(at);
    last.kill("SIGTERM");
    expect(await last.exited).toBe(0);
    using database = closing(at.database());
    expect(faultsOf(database.db, load.acknowledged.union(more.acknowledged))).toEqual([]);
    console.log(`syncs of ${SYNC_MS} ms: mails acknowledged ${mails}, syncs ${syncs}, lost 0, doubled 0`);
  },
  90_000,
);

test.skipIf(reason !== undefined)(
  "a slow disk of the mail files holds up those who send long mails, and nobody else",
  async () => {
    await using disk = await slowDisk(3_000, ".seg");
    await using at = await house({});
    await using server = await at.start(disk.env);
    const owner = await desk(at, server);
    const send = (text: string) =>
      deliver(server.smtp, {
        from: "ann@client.example",
        to: owner.to,
        raw: rawMail({ from: "Ann <ann@client.example>", to: owner.to, subject: "Sum", text }),
      });
    await disk.slow();
    const ended: string[] = [];
    const long = Promise.all(
      ["a", "b", "c"].map(async (word) => {
        const answer = await send(`${word.repeat(70)}\r\n`.repeat(2_000));
        ended.push("long");
        return answer;
      }),
    );
    while ((await disk.syncs()) === 0) await Bun.sleep(5);
    expect(await send("Short")).toStartWith("250");
    for (const path of ["/livez", "/readyz", "/auth/me", "/messages"])
      expect((await ask(server, owner, path)).status).toBe(200);
    ended.push("short");
    expect(await long).toEqual(Array(3).fill(expect.stringMatching(/^250 /)));
    expect(ended).toEqual(["short", "long", "long", "long"]);
    await disk.heal();
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  },
  60_000,
);

async function slowWords({ http }: ServerProcess): Promise<string | undefined> {
  const answer = await fetch(`${http}/readyz`);
  expect(answer.status).toBe(200);
  const { warnings } = (await answer.json()) as { warnings: { slow_disk?: string } };
  return warnings.slow_disk;
}

async function doctorsWords(at: House, env: Record<string, string>): Promise<object | undefined> {
  const child = at.spawn(env, "doctor", "--json", "--web", "https://127.0.0.1:1/");
  const { checks } = JSON.parse(await new Response(child.stdout).text()) as { checks: { name: string }[] };
  return checks.find(({ name }) => name === "disk speed");
}
