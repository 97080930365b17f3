import { expect, test } from "bun:test";
import { join } from "node:path";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { startModelServer, toolCalls } from "../support/model-server.ts";
import { startToolServer } from "../support/tool-server.ts";
import { type Image, imageFile, whyNoMounts } from "./disks.ts";
import { account, type Account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { closing, untilIdle } from "./load.ts";

/** `POWER_CUTS=20 bun test test/faults/power-cut-calls.test.ts` for the full run, `FAULT_SEED=…` for the moments of an earlier one. */
const CUTS = Number(process.env["POWER_CUTS"] ?? 2);
const CUT_MS = 15_000;
const IMAGE_MB = 512;
const CLIENTS = 6;
const LOAD_MS = 600;

const reason = await whyNoMounts("loop");
if (reason !== undefined) console.log(`Power cuts in the middle of calls are not tried: ${reason}`);

/** What was known outside of the server when its power went: the ids that calls were answered with, and what was called. */
interface Known {
  answered: Set<string>;
  accepted: Set<string>;
  called: string[];
}

test.skipIf(reason !== undefined)(
  "no call that was answered before a power cut is lost after it, and no tool is called again",
  async () => {
    const chance = chanceFrom(seedFrom("FAULT_SEED", "power cuts in the middle of calls"));
    await using tools = startToolServer([
      { name: "note", description: "Writes a note.", run: ({ title }) => `noted ${String(title)}` },
    ]);
    const titles = () => tools.calls.map(({ args }) => String(args["title"]));
    await using model = startModelServer({
      reply: (body) => {
        const [title] = /note \d+-\d+/.exec(JSON.stringify(body.messages)) ?? [];
        const is_answered = body.messages.some(({ role }) => role === "tool");
        return is_answered || title === undefined
          ? "Done."
          : toolCalls([{ name: "notes__note", args: { title } }]);
      },
    });
    await using image = await imageFile(IMAGE_MB);
    await using disk = await image.mount();
    const settings = {
      egress: { allow: ["127.0.0.1"] },
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
    };
    await using at = await house(settings, join(disk.path, "data"));
    const owner = await account(at, "ann@client.example");
    await using server = await at.start();
    await furnish(server, owner, tools.url);
    const load = startCalls(server, owner);
    for (let cut = 0; cut < CUTS; cut += 1) {
      await load.reached(load.answered.size + 20);
      await Bun.sleep(chance() * LOAD_MS);
      server.kill("SIGSTOP");
      await using copy = await image.copy();
      // The server has been standing still since before the copy: what is known now was said before.
      const known = { answered: new Set(load.answered), accepted: new Set(load.accepted), called: titles() };
      const faults = await afterPowerCut(copy, { known, settings, titles });
      server.kill("SIGCONT");
      expect(faults).toEqual([]);
    }
    await load.stop();
    expect(titles().length).toBeGreaterThan(CUTS * 10);
    console.log(
      `power cuts ${CUTS}, calls answered ${load.answered.size}, ${load.accepted.size} of them with 202`,
    );
  },
  CUTS * CUT_MS + 10_000,
);

/** What is wrong once a server has started on the copied disk and has gone on with what it found. */
async function afterPowerCut(
  copy: Image,
  {
    known,
    settings,
    titles,
  }: { known: Known; settings: Parameters<typeof house>[0]; titles: () => string[] },
): Promise<string[]> {
  await using disk = await copy.mount();
  await using at = await house(settings, join(disk.path, "data"));
  await using server = await at.start();
  await untilIdle(at);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  const stored = statesIn(at);
  const lost = [...known.answered].filter((id) => stored.get(id) !== "done");
  const left = [...known.accepted].filter((id) => stored.get(id) === undefined);
  const again = titles()
    .slice(known.called.length)
    .filter((title) => known.called.includes(title));
  return [
    ...lost.map((id) => `answered and lost: ${id}`),
    ...left.map((id) => `accepted and lost: ${id}`),
    ...again.map((title) => `called again: ${title}`),
    ...[...stored].filter(([, state]) => state === "received").map(([id]) => `never ended: ${id}`),
  ];
}

function statesIn(at: House): Map<string, string> {
  using database = closing(at.database());
  const rows = database.db.prepare("select id, state from messages").raw().all() as [string, string][];
  return new Map(rows);
}

async function furnish(server: ServerProcess, owner: Account, base_url: string): Promise<void> {
  const headers = { "x-api-key": owner.api_key, "content-type": "application/json" };
  const send = async (method: string, path: string, body: object) => {
    const answer = await fetch(server.http + path, { method, headers, body: JSON.stringify(body) });
    expect(answer.status).toBeLessThan(300);
    return (await answer.json()) as { id: string };
  };
  await inbox(server, owner);
  const { id } = await send("POST", "/connections", { kind: "mcp", label: "Notes", base_url });
  const [first] = (await (await fetch(`${server.http}/inboxes`, { headers })).json()) as { id: string }[];
  await send("PATCH", `/inboxes/${first?.id}`, { mcp_connection_ids: [id] });
}

/** Calls over HTTP that wait for their result, some of them with a tool, some of them for no time at all. */
function startCalls(server: ServerProcess, owner: Account) {
  const answered = new Set<string>();
  const accepted = new Set<string>();
  const ending = new AbortController();
  const call = async (client: number, count: number): Promise<void> => {
    const prefer = count % 5 === 0 ? { prefer: "wait=0" } : {};
    const response = await fetch(`${server.http}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": owner.api_key, "content-type": "application/json", ...prefer },
      body: JSON.stringify({ instruction: `@notes Make the note ${client}-${count}` }),
    });
    const { message_id } = (await response.json()) as { message_id: string };
    if (response.status === 202) accepted.add(message_id);
    else if (response.status === 200) answered.add(message_id);
    else throw new Error(`A call was answered with ${response.status}`);
  };
  const run = async (client: number): Promise<void> => {
    for (let count = 0; !ending.signal.aborted; count += 1) await call(client, count);
  };
  const running = Promise.all(Array.from({ length: CLIENTS }, (_, client) => run(client)));
  return {
    answered,
    accepted,
    async reached(count: number) {
      while (answered.size < count) await Promise.race([running, Bun.sleep(10)]);
    },
    async stop() {
      ending.abort();
      await running;
    },
  };
}
