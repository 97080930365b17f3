import { until } from "../support/until.ts";
import { expect, test } from "bun:test";
import { readdir, rename, rm, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Database } from "better-sqlite3";
import { type Account, account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { limitFileSize, whyNoLimit } from "./few-handles.ts";
import { closing, untilIdle } from "./load.ts";
import { logged, takenBack, warnings } from "./surfaces.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";

const FILE_BYTES = 200_000;
const FIRST = "00000001.seg";
const SECOND = "00000002.seg";

interface Sent {
  message_id: string;
  status: string;
  error: string | null;
  reason: string | null;
}

async function ask(server: ServerProcess, { api_key }: Account, path: string, init: RequestInit = {}) {
  const headers = { "x-api-key": api_key, "content-type": "application/json" };
  return fetch(`${server.http}${path}`, { ...init, headers });
}

/** Sends a call with a file of `letter`s, and gives the message as it ended. */
async function send(server: ServerProcess, owner: Account, letter: string): Promise<Sent> {
  const data = Buffer.alloc(FILE_BYTES, letter).toString("base64");
  const attachments = [{ filename: `${letter}.txt`, content_type: "text/plain", data }];
  const body = JSON.stringify({ instruction: "Sum it up.", attachments });
  const answer = await ask(server, owner, "/v1/messages", { method: "POST", body });
  return (await answer.json()) as Sent;
}

/** What the first file of a message says: its letter, or the code of the problem. */
async function fileOf(server: ServerProcess, owner: Account, { message_id }: Sent): Promise<string> {
  const story = (await (await ask(server, owner, `/messages/${message_id}`)).json()) as {
    attachments: { url: string }[];
  };
  const answer = await ask(server, owner, story.attachments[0]?.url ?? "");
  if (answer.status !== 200) return `${answer.status} ${((await answer.json()) as { code: string }).code}`;
  const letters = new Set(await answer.text());
  return [...letters].join("");
}

/** What the doctor says of the files of mails. */
async function diagnosis(at: House): Promise<unknown> {
  const { checks } = JSON.parse((await at.cli("doctor", "--json")).out) as { checks: { name: string }[] };
  return checks.find(({ name }) => name === "mail files");
}

interface Person extends Account {
  /** The address of their inbox. */
  address: string;
}

async function people(at: House): Promise<{ ann: Person; bob: Person }> {
  const [ann, bob] = [await account(at, "ann@client.example"), await account(at, "bob@client.example")];
  await using server = await at.start();
  const found = {
    ann: { ...ann, address: await inbox(server, ann) },
    bob: { ...bob, address: await inbox(server, bob) },
  };
  await ended(server);
  return found;
}

async function ended(server: ServerProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

async function closeAccount(server: ServerProcess, owner: Account): Promise<void> {
  const body = JSON.stringify({ confirm: owner.email });
  expect((await ask(server, owner, "/auth/account", { method: "DELETE", body })).status).toBeLessThan(300);
}

/** What waits for this machine to be well is tried now, and not only when its time has come. */
function hasten(db: Database): void {
  db.exec("update jobs set run_at = unixepoch() where kind = 'route_message'");
}

const LOSSES: [string, (path: string) => Promise<void>][] = [
  ["lost", (path) => rm(path)],
  ["cut to nothing", (path) => truncate(path, 0)],
  ["a copy that lags", (path) => truncate(path, FILE_BYTES / 2)],
];

test.each(LOSSES)(
  "a file of mails that is %s never gives anybody what is another's",
  async (_, harm) => {
    await using at = await house();
    const { ann, bob } = await people(at);
    const mail = join(at.dir, "mail");
    let first: Sent;
    {
      await using server = await at.start();
      first = await send(server, ann, "a");
      expect([first.status, await fileOf(server, ann, first)]).toEqual(["done", "a"]);
      await ended(server);
    }
    await harm(join(mail, FIRST));
    expect(await diagnosis(at)).toMatchObject({
      verdict: "fail",
      found: expect.stringContaining("1 file (196 KB)"),
    });
    await using server = await at.start();
    const second = await send(server, bob, "b");
    expect([second.status, await fileOf(server, bob, second)]).toEqual(["done", "b"]);
    expect(await readdir(mail)).toContain(SECOND);
    expect(await fileOf(server, ann, first)).toBe("410 content_lost");
    expect((await warnings(server))["lost_mail"]).toContain("1 file");
    await logged(server, "are missing");
    await closeAccount(server, ann);
    await untilIdle(at);
    expect(await fileOf(server, bob, second)).toBe("b");
    await takenBack(server, "lost_mail");
  },
  40_000,
);

test("an accepted mail whose file is away waits for it, over a restart, and is done once it is back", async () => {
  await using at = await house();
  const { ann } = await people(at);
  await at.cli("queue", "hold", "route_message");
  {
    await using server = await at.start();
    const data = Buffer.alloc(FILE_BYTES, "a").toString("base64");
    const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
    const body = JSON.stringify({ instruction: "Sum it up.", attachments, async: true });
    expect((await ask(server, ann, "/v1/messages", { method: "POST", body })).status).toBe(202);
    await ended(server);
  }
  const path = join(at.dir, "mail", FIRST);
  await rename(path, `${path}.away`);
  await at.cli("queue", "release");
  const states = async (server: ServerProcess) =>
    ((await (await ask(server, ann, "/messages")).json()) as { items: Sent[] }).items;
  for (const _start of ["first", "second"]) {
    await using server = await at.start();
    using database = closing(at.database());
    hasten(database.db);
    await logged(server, "The content of a.txt is missing on the disk of this server. It is waited for.");
    expect(await states(server)).toMatchObject([{ status: "received", reason: null }]);
    expect((await warnings(server))["lost_mail"]).toContain("1 file");
    await ended(server);
  }
  await rename(`${path}.away`, path);
  await using server = await at.start();
  using database = closing(at.database());
  hasten(database.db);
  await untilIdle(at);
  expect(await states(server)).toMatchObject([{ status: "done" }]);
  expect((await warnings(server))["lost_mail"]).toBeUndefined();
});

const SWAPS: [string, (path: string) => Promise<void>][] = [
  ["deleted", (path) => rm(path)],
  ["deleted with its folder", (path) => rm(dirname(path), { recursive: true })],
  ["moved away", (path) => rename(path, `${path}.away`)],
  [
    "replaced",
    async (path) => {
      await writeFile(`${path}.new`, Buffer.alloc(2 * FILE_BYTES, "x"));
      await rename(`${path}.new`, path);
    },
  ],
];

test.each(SWAPS)(
  "a file of mails that is %s under the server takes nothing more in; the next mail goes into a new one",
  async (_, swap) => {
    await using at = await house();
    const { ann, bob } = await people(at);
    await using server = await at.start();
    const first = await send(server, ann, "a");
    await swap(join(at.dir, "mail", FIRST));
    const raw = rawMail({ from: bob.email, to: bob.address, text: "word ".repeat(FILE_BYTES / 5) });
    const mail = { from: bob.email, to: bob.address, raw };
    expect(await deliver(server.smtp, mail)).toStartWith("451 4.3.0");
    expect(await deliver(server.smtp, mail)).toStartWith("250");
    await logged(server, "A file of mails was deleted, moved or replaced");
    const second = await send(server, bob, "b");
    expect(second.status).toBe("done");
    expect(await fileOf(server, ann, first)).toBe("410 content_lost");
    await ended(server);
    await using again = await at.start();
    expect(await fileOf(again, bob, second)).toBe("b");
    expect(await fileOf(again, ann, first)).toBe("410 content_lost");
    using database = closing(at.database());
    const lost = database.db.prepare("select count(*) from attachments where lost_at is not null");
    expect(lost.pluck().get()).toBe(1);
  },
  40_000,
);

test("a folder of mails that cannot be used is said by readyz, uses up no try of what waits, and all is done once it can", async () => {
  await using at = await house();
  const { ann } = await people(at);
  await using server = await at.start();
  await at.cli("queue", "hold", "route_message");
  const letter = { from: ann.email, to: ann.address };
  const large = () => {
    const headers = { "Message-ID": `<${crypto.randomUUID()}@client.example>` };
    return rawMail({ ...letter, headers, text: "word ".repeat(FILE_BYTES / 5) });
  };
  expect(await deliver(server.smtp, { ...letter, raw: large() })).toStartWith("250");
  const mail = join(at.dir, "mail");
  await rename(mail, `${mail}.away`);
  await writeFile(mail, "");
  using database = closing(at.database());
  database.db.exec("delete from held_kinds");
  await logged(server, "a job waits: this machine cannot do it now");
  expect(await deliver(server.smtp, { ...letter, raw: large() })).toStartWith("451 4.3.0");
  const small = rawMail({ ...letter, text: "A word." });
  expect(await deliver(server.smtp, { ...letter, raw: small })).toStartWith("250");
  const data = Buffer.alloc(FILE_BYTES, "a").toString("base64");
  const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
  const body = JSON.stringify({ instruction: "Sum it up.", attachments });
  expect((await ask(server, ann, "/v1/messages", { method: "POST", body })).status).toBe(503);
  const words = "The files of mails cannot be used (ENOTDIR)";
  const ready = await fetch(`${server.http}/readyz`);
  expect([ready.status, await ready.json()]).toMatchObject([
    503,
    { checks: { database: "ok", disk: expect.stringContaining(words) } },
  ]);
  await logged(server, `${words}; large mails and files are put off until it is well`);
  const failures = database.db.prepare("select max(failures) from jobs where kind = 'route_message'");
  expect(failures.pluck().get()).toBe(0);
  await rm(mail);
  await rename(`${mail}.away`, mail);
  expect((await fetch(`${server.http}/readyz`)).status).toBe(200);
  hasten(database.db);
  await untilIdle(at);
  const { items } = (await (await ask(server, ann, "/messages")).json()) as { items: Sent[] };
  expect(items).toMatchObject([{ status: "done" }, { status: "done" }]);
}, 60_000);

test.skipIf(whyNoLimit !== undefined)(
  "a limit on the size of files puts large mails off, and readyz says so with its mend until one is stored",
  async () => {
    await using at = await house();
    const { ann } = await people(at);
    await using server = await at.start();
    let sent = 0;
    const large = () => {
      const headers = { "Message-ID": `<large-${(sent += 1)}@client.example>` };
      const raw = rawMail({
        from: ann.email,
        to: ann.address,
        headers,
        text: "word ".repeat(FILE_BYTES / 5),
      });
      return deliver(server.smtp, { from: ann.email, to: ann.address, raw });
    };
    expect(await large()).toStartWith("250");
    expect(await warnings(server)).toEqual({});
    limitFileSize(server.pid, String(FILE_BYTES));
    // Whatever is stored meanwhile of the run of the first one takes the warning back, until the next large one.
    let said: string | undefined;
    await until(async () => {
      expect(await large()).toStartWith("451 4.3.0");
      said = (await warnings(server))["mail_files"];
      return said !== undefined;
    });
    expect(said).toContain("EFBIG");
    expect(said).toContain("LimitFSIZE of the service, ulimit -f");
    await logged(server, "A file would grow beyond the limit on the size of files");
    limitFileSize(server.pid, "unlimited");
    expect(await large()).toStartWith("250");
    expect(await warnings(server)).toEqual({});
  },
);
