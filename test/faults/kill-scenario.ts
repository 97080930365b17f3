import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "bun:test";
import type { App } from "../../src/app.ts";
import { askForBackup } from "../../src/backup/schedule.ts";
import type { Config } from "../../src/config/config.ts";
import { freshToken } from "../../src/resources/integrations/tokens.ts";
import { takeOver } from "../../src/serve.ts";
import { comeBack, sessionOf } from "../support/consent.ts";
import type { RoomMail } from "../support/mailroom.ts";
import { notification, rawMail } from "../support/mails.ts";
import { type ModelRequestBody, toolCalls } from "../support/model-server.ts";
import { type AlteredServer, startAlteredServer } from "../support/oauth-altered-server.ts";
import { type OAuthProviders, startOAuthProviders } from "../support/oauth-providers.ts";
import { linesOf } from "../support/places.ts";
import { deliver } from "../support/smtp-client.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { create, type ToolRoom, toolRoom } from "../support/tool-room.ts";
import { startReceiver, TO_LOOPBACK, type WebhookReceiver } from "../support/webhook-receiver.ts";

/** Nobody copies a shorter log back on another thread, so that a copy of it is one of a single moment. */
const LOG_BYTES = 4 * 1_048_576;
const LARGE_TEXT = "A long story. ".repeat(5_000);
const KEPT_DAYS = 30;
/** Nobody is there: what asks hears so at once. */
const NO_DNS = "127.0.0.1:9";

/** What a kill at this moment would leave. */
export interface Moment {
  /** Such as `before inbound/receive.ts:68`. */
  at: string;
  /** A folder with copies of `db`, `data` and `backups`. */
  dir: string;
  now_ms: number;
  /** What somebody had been told by then: `mail small`, `ended` and the like. */
  said: string[];
  /** What others had by then been given. */
  given: Given;
}

export interface Given {
  mails: number;
  events: number;
  calls: number;
}

const QUESTION = "Is it to be kept?";
/** The subject of a mail that a rule keeps and forwards, once it has asked the model. */
export const KEPT = "Keep me";
const RULES = [
  {
    name: "Kept",
    when: [{ field: "subject", contains: [KEPT] }],
    question: QUESTION,
    do: { keep: true, forward_to: "ada@example.com" },
  },
  {
    name: "Waits",
    when: [{ field: "subject", contains: ["Wait"] }],
    do: { wait: { until: "12:02", zone: "UTC" } },
  },
];

/** A server, its owner, and everybody it has to do with. */
interface Scene {
  room: ToolRoom;
  config: Config;
  key: string;
  /** The connection to a code host, by OAuth; "" before it is connected. */
  connection_id: string;
  sink: SmtpSink;
  hooks: WebhookReceiver;
  providers: OAuthProviders;
  /** A tool server that asks for consent. */
  guarded: AlteredServer;
  said: string[];
}

/** A life in which everything happens once, and the moments of it that were asked for. */
export interface Life extends Scene, AsyncDisposable {
  moments: Moment[];
  /** The lines that asked for a commit, or for something of somebody else. */
  reached: Set<string>;
}

/** Lives it in `base`; `isWanted` says of each moment, by its number, whether it is kept. */
export async function live(base: string, isWanted: (moment: number) => boolean): Promise<Life> {
  await using stack = new AsyncDisposableStack();
  mkdirSync(join(base, "backups"));
  const scene = await openScene(base, stack);
  const { app, clock } = scene.room;
  const life = { moments: [] as Moment[], reached: new Set<string>() };
  const [db, data, backups] = [join(base, "db"), app.config.data.dir, app.config.backup.dir];
  const mails = join(data, "mail");
  let count = 0;
  let last = "";
  const pass = (at: string): void => {
    const { sink, hooks, room } = scene;
    const given = { mails: sink.mails.length, events: hooks.received.length, calls: room.tools.calls.length };
    const state = [stateOf([db, mails, backups]), scene.said.length, ...Object.values(given)].join("\n");
    if (state === last) return;
    last = state;
    count += 1;
    if (!isWanted(count)) return;
    const dir = join(base, "moments", String(count));
    copyTo(dir, { db, data, backups });
    life.moments.push({ at, dir, now_ms: clock.now(), said: [...scene.said], given });
  };
  watchCommits(app, { pass, reached: life.reached });
  await everything(scene);
  const built = stack.move();
  return { ...scene, ...life, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

function copyTo(dir: string, folders: { db: string; data: string; backups: string }): void {
  const log = statSync(join(folders.db, "mailwright.db-wal"), { throwIfNoEntry: false });
  if ((log?.size ?? 0) >= LOG_BYTES) throw new Error("The log may be copied back meanwhile");
  mkdirSync(dir, { recursive: true });
  for (const [name, folder] of Object.entries(folders)) {
    // By another process: whoever closes a file here gives up the locks that SQLite has on it.
    const copied = Bun.spawnSync(["cp", "-a", folder, join(dir, name)]);
    if (copied.exitCode !== 0) throw new Error(String(copied.stderr));
  }
}

/** Between two commits nothing lasts, so that the moments before and after each are all that there are. */
function watchCommits(
  app: App,
  { pass, reached }: { pass: (at: string) => void; reached: Set<string> },
): void {
  const watched =
    (real: App["insist"]): App["insist"] =>
    async (operation, about) => {
      const lines = linesOf(new Error().stack ?? "");
      for (const line of lines) reached.add(line);
      pass(`before ${lines.join(" ")}`);
      const value = await real(operation, about);
      pass(`after ${lines.join(" ")}`);
      return value;
    };
  const { write } = app;
  const watchedWrite = watched(async (operation) => ({ value: await write(operation) }));
  app.write = async (operation) => (await watchedWrite(operation, {}))?.value as never;
  app.insist = watched(app.insist);
  const { fetch } = app;
  app.fetch = (url, init) => {
    for (const line of linesOf(new Error().stack ?? "")) reached.add(line);
    return fetch(url, init);
  };
}

/** The same for as long as nothing is written to any file of these folders. */
function stateOf(folders: string[]): string {
  const paths = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  const states = paths.map((path) => {
    const { size, mtimeMs } = statSync(path);
    return `${path} ${size} ${mtimeMs}`;
  });
  return states.join("\n");
}

async function openScene(base: string, stack: AsyncDisposableStack): Promise<Scene> {
  const providers = stack.use(startOAuthProviders());
  const sink = stack.use(await startSmtpSink({ starttls: false }));
  const hooks = stack.use(
    startReceiver(
      failingOnce(
        () => new Response("", { status: 500 }),
        () => new Response(),
      ),
    ),
  );
  const busy = failingOnce(
    () => Response.json({ error: { message: "busy" } }, { status: 503 }),
    () => "At last.",
  );
  const tired = failingOnce(
    () => Response.json({ error: { message: "busy" } }, { status: 503 }),
    () => "Again.",
  );
  const refused = failingOnce(
    () => Response.json({ error: { message: "no" } }, { status: 401 }),
    () => "Now.",
  );
  const reply = (body: ModelRequestBody) => {
    const { role, content } = body.messages.at(-1) ?? { role: "", content: "" };
    if (role !== "tool" && content.includes("Make an event")) return toolCalls([create()]);
    const [, title] = role === "tool" ? [] : (/Plan (\w+)/.exec(content) ?? []);
    if (title !== undefined) return toolCalls([create({ title })]);
    if (content.includes(QUESTION)) return "Yes.";
    if (content.includes("Be busy")) return busy();
    if (content.includes("Be tired")) return tired();
    return content.includes("Be refused") ? refused() : "Done.";
  };
  const room = stack.use(
    await toolRoom([], {
      model: { reply },
      config: {
        ...providers.config,
        database: { url: `sqlite:${join(base, "db", "mailwright.db")}` },
        backup: { dir: join(base, "backups") },
        dns: { servers: [NO_DNS] },
        outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [60, 60, 60] },
        webhooks: TO_LOOPBACK,
        plans: { team: { history_days: KEPT_DAYS } },
      },
    }),
  );
  const { app, owner } = room;
  expect((await owner.patch(`/inboxes/${room.inbox.id}`, { rules: RULES })).status).toBe(200);
  expect((await owner.post("/v1/webhooks", { url: hooks.url, event_types: ["*"] })).status).toBe(201);
  const guarded = stack.use(startAlteredServer());
  return {
    room,
    config: app.config,
    key: owner.key,
    connection_id: "",
    sink,
    hooks,
    providers,
    guarded,
    said: [],
  };
}

function failingOnce<First, Then>(first: () => First, then: () => Then): () => First | Then {
  let asked = 0;
  return () => ((asked += 1) === 1 ? first() : then());
}

async function everything(scene: Scene): Promise<void> {
  await takeOver(scene.room.app);
  await connect(scene);
  await shortenLog(scene);
  await accept(scene);
  await shortenLog(scene);
  await settle(scene, ["5s"]);
  await shortenLog(scene);
  await goOn(scene);
  await again(scene);
  await consent(scene);
  await settle(scene, ["2m"]);
  scene.said.push("another day");
  await shortenLog(scene);
  await settle(scene, ["1d", "1h"]);
  await renewToken(scene);
  await growOld(scene);
  await end(scene);
}

/** Else it would get so long that another thread copies it back meanwhile. */
async function shortenLog({ room }: Scene): Promise<void> {
  await room.app.upkeep.emptyLog();
}

/** A kill on the way to a consent leaves nothing connected, and one may begin anew. */
async function connect(scene: Scene): Promise<void> {
  const { room, providers, guarded, said } = scene;
  const { owner } = room;
  const { body } = await owner.post("/integrations/codehost-b/connect");
  expect((await comeBack(room, owner, await providers.agree(body.authorize_url))).status).toBe(200);
  const { body: connection } = await owner.post("/connections", { kind: "mcp", base_url: guarded.url });
  const departure = await owner.post(`/integrations/mcp/${connection.id}/connect`);
  const state = new URL(departure.body.authorize_url).searchParams.get("state") ?? "";
  const query = new URLSearchParams({ code: "x", state });
  expect((await comeBack(room, owner, `/integrations/mcp/callback?${query.toString()}`)).status).toBe(200);
  const connections: { id: string; kind: string; status: string }[] = (await owner.get("/connections")).body;
  expect(connections.map(({ status }) => status)).not.toContain("needs_auth");
  scene.connection_id = connections.find(({ kind }) => kind === "codehost-b")?.id ?? "";
  said.push("connected");
}

/** Runs what is due, now and as time passes. */
async function settle({ room }: Scene, spans: string[]): Promise<void> {
  await room.drain();
  for (const span of spans) {
    room.clock.advance(span);
    await room.drain();
  }
}

async function mail({ room, said }: Scene, name: string, parts: RoomMail): Promise<void> {
  const headers = { "Message-ID": `<${name}@example.com>`, ...parts.headers };
  expect(await room.send({ ...parts, headers })).toStartWith("250 ");
  said.push(`mail ${name}`);
}

async function accept(scene: Scene): Promise<void> {
  const { room, said } = scene;
  const { owner, inbox } = room;
  await mail(scene, "small", { text: "Hello" });
  await mail(scene, "large", { text: LARGE_TEXT });
  await mail(scene, "event", { text: "@calendar Make an event" });
  await mail(scene, "busy", { text: "Be busy" });
  await mail(scene, "refused", { text: "Be refused" });
  await mail(scene, "kept", { subject: KEPT, text: "Whatever it is" });
  await mail(scene, "waits", { subject: "Wait", text: "Hello" });
  await mail(scene, "daily", { subject: "Daily", text: "--every=daily\nSay good morning" });
  const two = rawMail({ to: inbox.address, headers: { "X-Other": "1\r\nFrom: eve@example.net" } });
  expect(await room.send({ raw: two })).toStartWith("550 ");
  const call = await owner.post("/v1/messages", CALL, { "idempotency-key": CALL_KEY });
  expect(call.body.status).toBe("done");
  said.push("call");
  expect((await owner.post("/v1/messages", { instruction: "Later", async: true })).status).toBe(202);
  expect((await owner.post(`/inboxes/${inbox.id}/test`)).status).toBe(200);
}

/** A call with a key: a second one is the same. */
export const CALL = { instruction: "Call" };
export const CALL_KEY = "the-only-call";

async function goOn(scene: Scene): Promise<void> {
  const { room } = scene;
  await mail(scene, "anew", { text: "--new Hello", headers: { "In-Reply-To": "<small@example.com>" } });
  const failed = (await room.activity()).find(({ status }) => status === "failed");
  expect((await room.owner.post(`/messages/${failed.message_id}/retry`)).status).toBe(202);
  const first = (await room.outgoing()).find(({ message_id }) => message_id !== null);
  const bounce = { from: "", to: first?.envelope_from ?? "", raw: notification({}) };
  expect(await deliver(room.door, bounce)).toStartWith("250 ");
}

/** What is done is run again beside: once to its end, and once with a model that is busy at first. */
async function again({ room, said }: Scene): Promise<void> {
  const { id } = await room.app.db
    .selectFrom("messages")
    .select("id")
    .where("rfc_message_id", "=", "event@example.com")
    .executeTakeFirstOrThrow();
  const asked = [{}, { instruction: "Be tired" }];
  for (const one of asked) expect((await room.owner.post(`/messages/${id}/replay`, one)).status).toBe(202);
  const starred = await room.owner.patch(`/messages/${id}`, {
    expected: { contains: "nothing of the kind" },
  });
  expect(starred.status).toBe(200);
  expect((await room.owner.post("/v1/test-runs", {})).status).toBe(202);
  said.push("again");
}

/** Four calls wait: two get a yes and two a no, by mail and by the button of the page. */
async function consent(scene: Scene): Promise<void> {
  const { room, sink } = scene;
  const { owner } = room;
  for (const title of ["lunch", "dinner", "nothing", "never"])
    await mail(scene, title, { text: `Plan ${title}`, headers: { "In-Reply-To": "<else@example.org>" } });
  await settle(scene, []);
  const letterOf = (title: string): { to: string } => {
    const raw = sink.mails.map((one) => String(one.raw)).find((one) => one.includes(`title: ${title}`)) ?? "";
    return { to: /^Reply-To:\s*<?([^<>\s]+@[^<>\s]+?)>?\r$/im.exec(raw)?.[1] ?? "" };
  };
  for (const [title, text] of [
    ["lunch", "Yes"],
    ["nothing", "No"],
  ] as const) {
    const { to } = letterOf(title);
    await mail(scene, `about-${title}`, {
      to,
      rcpt: to,
      text,
      headers: { "In-Reply-To": "<else@example.org>" },
    });
  }
  const { body } = await owner.get("/v1/approvals?status=pending");
  const cookie = await sessionOf(room, owner);
  const headers = { cookie, "content-type": "application/json" };
  const press = async (title: string, act: string): Promise<number> => {
    const { id, hash } = body.items.find(
      (item: { arguments: { title: string } }) => item.arguments.title === title,
    );
    const pressed = { method: "POST", headers, body: JSON.stringify(act === "approve" ? { hash } : {}) };
    return (await room.request(`/v1/approvals/${id}/${act}`, pressed)).status;
  };
  expect([await press("dinner", "approve"), await press("never", "refuse")]).toEqual([202, 200]);
  scene.said.push("allowed");
}

async function renewToken({ room, providers, connection_id, said }: Scene): Promise<void> {
  expect(await freshToken(room.app, connection_id)).not.toBeNull();
  said.push("renewed");
  providers.instead = () => Response.json({ error: "invalid_grant" }, { status: 400 });
  room.clock.advance("2h");
  expect(await freshToken(room.app, connection_id)).toBeNull();
  providers.instead = null;
  said.push("over");
}

async function growOld(scene: Scene): Promise<void> {
  scene.said.push("old");
  await settle(scene, [`${KEPT_DAYS + 10}d`]);
}

async function end(scene: Scene): Promise<void> {
  const { app, owner, request } = scene.room;
  await askForBackup(app);
  await settle(scene, []);
  const headers = { "x-api-key": owner.key, "content-type": "application/json" };
  const body = JSON.stringify({ confirm: owner.user.email });
  expect((await request("/auth/account", { method: "DELETE", headers, body })).status).toBe(204);
  scene.said.push("ended");
  await settle(scene, ["10m", "10m"]);
}
