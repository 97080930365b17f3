import { generateKeyPairSync } from "node:crypto";

import { startDnsServer } from "../test/support/dns-server.ts";
import { startToolServer } from "../test/support/tool-server.ts";
import { SHAPES, STRUCTURES, textOf } from "./hostile-shapes.ts";
import type { LoopDelay, LoopDelays } from "./loop-delay.ts";
import { speak, startRelay } from "./smtp-peers.ts";
import {
  createAccount,
  freePort,
  noteFigure,
  percentile,
  printResults,
  printSettings,
  SENDER,
  startScript,
  startServer,
} from "./support.ts";

/**
 * Whether a text that was made to take long holds up everybody else: so much of each shape through each door where
 * others' texts come in, one at a time, while the delay of the server's event loop is measured inside of it and
 * `/livez` is asked from outside. `bun bench/hostile.ts [SHAPE…]` sends only those.
 */
const CHARS = 250_000;
/** The most that a call's arguments may have to be looked through: of more, nothing is read. */
const ARGUMENT_CHARS = 99_000;
const ARGUMENT_SIZES = [ARGUMENT_CHARS, CHARS];
/** More than are made at once. */
const CALLS_AT_ONCE = 40;
/** Within the bounds of parts, and beyond them. */
const JSON_CHARS = [60_000, 2_000_000];
const GOALS = { loop_ms: 50, livez_ms: 500 };
/** What a field of the API, or of a header, takes at most. */
const INSTRUCTION_CHARS = 9_900;
/** However many bytes each has, no more than a context may. */
const CONTEXT_CHARS = 65_000;
const HEADER_CHARS = 60_000;
/** Titles in one answer: no more than the beginning of a page's title counts, and no more than one page of a search. */
const TITLES = 50;
const MACRO_PLACES = 20;
/** As many files as fit into the mail in any characters. */
const FILES = 500;
const NAME_CHARS = 200;
const PHRASE_CHARS = 150;
/** In other characters it takes up to four times as many. */
const PACKED_CHARS = 45_000;
const SETTLE_MS = 8;
/** An answer that has not come by then is none; a long one takes longer. */
const ANSWER_WITHIN_MS = 100;
const LONG_ANSWER_WITHIN_MS = 2_000;
const WORST_SHOWN = 20;

const named = process.argv.slice(2);
const isAsked = ([name]: [string, unknown]): boolean => named.length === 0 || named.includes(name);
const shapes = Object.entries(SHAPES).filter(isAsked);
const structures = Object.entries(STRUCTURES).filter(isAsked);

/** What the model, the tool and the receiver of webhooks say at the moment. */
const say = {
  answer: "Done.",
  rounds: [] as Call[][],
  result: "done",
  hook: "ok",
  titles: [] as string[],
  models: [] as string[],
};
const SILENT = { answer: "Done.", rounds: [], result: "done", hook: "ok", titles: [], models: [] };
/** What the model says as it is, once. */
const raw = { completion: "" };
const relayed = { answers: 0, arrived: false };
const heard = { events: 0 };
let serial = 0;

await using model = startModel();
await using tools = startToolServer([
  { name: "read", annotations: { readOnlyHint: true }, run: () => say.result },
  { name: "write", run: () => say.result },
]);
await using hooks = startReceiver(() => (heard.events += 1));
await using notes = startNotes();
await using dns = await startDnsServer({
  "stranger.example": { A: ["127.0.0.2"], TXT: ["v=spf1 ip4:127.0.0.2 -all"] },
  "s._domainkey.stranger.example": { TXT: [`v=DKIM1; k=rsa; p=${publicKey()}`] },
  "_dmarc.stranger.example": { TXT: ["v=DMARC1; p=none"] },
});
await using relay = await startRelay(() => {
  relayed.answers += 1;
  relayed.arrived = true;
});
const loop_port = await freePort();
await using server = await startServer({
  preload: { path: "bench/loop-delay.ts", env: { BENCH_LOOP_PORT: String(loop_port) } },
  model_url: `http://127.0.0.1:${model.port}/v1`,
  relay_port: relay.port,
  more: `[egress]\nallow = ["127.0.0.1"]\n[webhooks]\nallow = ["127.0.0.1"]\n[dns]\nservers = ["${dns.address}"]`,
});
await using livez = await startScript("livez-probe.ts", server.http);
const { api_key, address } = await createAccount(server);
printSettings({
  shapes: shapes.length + structures.length,
  size: `${CHARS} characters of each, of arguments ${ARGUMENT_CHARS} as well; ${HEADER_CHARS} of a header, ${INSTRUCTION_CHARS} of an instruction; JSON of ${JSON_CHARS.join(" and ")}`,
  loop: "monitorEventLoopDelay of the server's main thread, 5 ms resolution, loaded by bun --preload",
  livez: "asked every 20 ms by a process of its own",
  order: "one text at a time, through one door after the other",
});

interface Call {
  name: string;
  arguments: string;
}

interface Door {
  name: string;
  /** In characters, where a text of the usual size alone would not be the dearest. */
  sizes?: number[];
  send: (text: string) => Promise<unknown>;
}

const PLAIN = "Content-Type: text/plain; charset=utf-8";
const MIXED = 'Content-Type: multipart/mixed; boundary="b"';
const SIGNATURE =
  "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=stranger.example; s=s; h=from:to:subject; bh=AAAA; b=AAAA\r\n";
const QUOTED = "Hello\r\n\r\n> quoted http://a.b/ and a@b.de";
const STATUS = "--b\r\nContent-Type: message/delivery-status\r\n\r\n";
const ASKED = { instruction: "Do it", content: "see http://a.b/ and a@b.de" };
const REPORT = 'Content-Type: multipart/report; report-type=delivery-status; boundary="b"';
const PARTS: [type: string, before: string][] = [
  ["text/html; charset=utf-8", '<p title="'],
  ["text/calendar; method=REQUEST", "BEGIN:VCALENDAR\r\n"],
  ["message/rfc822", "Subject: x\r\n\r\n"],
  ["text/plain; charset=utf-8", ""],
];
const ENDINGS = ["md", "html", "csv", "xml", "ics", "vcf", "txt"];

/** Rules of which every word is looked for, and none is there. */
const RULES = ["text", "subject", "header"].flatMap((field) =>
  Array.from({ length: 10 }, (_, rule) => ({
    name: `${field} ${rule}`,
    match: "any",
    when: Array.from({ length: 10 }, (__, at) => ({
      field,
      ...(field === "header" ? { name: "References" } : {}),
      contains: [`no such word ${rule} ${at}`, `aaaaaaaaaaaaaaaaaaaa ${rule} ${at}`],
    })),
    do: { tags: ["never"] },
  })),
);

const DOORS: Door[] = [
  { name: "mail: text", send: (text) => mail("Content-Type: text/plain; charset=utf-8", text) },
  { name: "mail: HTML", send: (text) => mail("Content-Type: text/html; charset=utf-8", text) },
  { name: "mail: header and address fields", send: (text) => mail(fieldsOf(text), "Hello") },
  { name: "mail: page, calendar, mail and text as parts", send: (text) => mail(MIXED, partsOf(text)) },
  { name: "mail: boundaries", send: (text) => mail(MIXED, text) },
  { name: "mail: names of many files, and a text of them", send: (text) => mail(MIXED, filesNamed(text)) },
  { name: "stranger's mail: names of many files", send: (text) => stranger(MIXED, filesNamed(text)) },
  { name: "stranger's mail: signed text", send: (text) => stranger(PLAIN, text) },
  { name: "stranger's mail: fields of signatures", send: (text) => stranger(signaturesOf(text), "Hello") },
  {
    name: "bounce: in words, our mail in it",
    send: (text) => bounce(PLAIN, `550 5.1.1 no\r\nMessage-ID:${text}`),
  },
  { name: "bounce: delivery status", send: (text) => bounce(REPORT, `${STATUS}X: ${text}\r\n`) },
  { name: "model: answer to a mail", send: (text) => mail(PLAIN, QUOTED, { answer: text }) },
  {
    name: "model: answer as a file",
    send: (text) => call({ ...ASKED, instruction: "--attach=html Do it" }, { answer: text }),
  },
  {
    name: "tool: arguments, as url",
    sizes: ARGUMENT_SIZES,
    send: (text) => toolCall([["desk__read", { url: text }]]),
  },
  {
    name: `tool: arguments, ${CALLS_AT_ONCE} calls in one answer`,
    sizes: [ARGUMENT_CHARS],
    send: (text) => toolCall(Array.from({ length: CALLS_AT_ONCE }, () => ["desk__read", { url: text }])),
  },
  { name: "tool: arguments, many, their names, no JSON", sizes: ARGUMENT_SIZES, send: strangeCalls },
  { name: "tool: arguments, texts in texts", sizes: ARGUMENT_SIZES, send: packedCalls },
  { name: "tool: result", send: (text) => toolCall([["desk__read", {}]], { result: text }) },
  {
    name: "tool server: addresses of its files",
    send: (text) => {
      const resource = { uri: `https://a${text}.example/${text}.txt`, mimeType: text, blob: "YQ==" };
      return rpc("tools/call", `"result":{"content":${JSON.stringify([{ type: "resource", resource }])}}`);
    },
  },
  { name: "tool server: description and schema", send: describe },
  { name: "notes: titles of pages, with a long instruction", send: titles },
  { name: `made files: ${ENDINGS.join(", ")}`, send: madeFiles },
  {
    name: "API: content and attachments",
    send: (text) => call({ instruction: "Do it", content: text, attachments: attached(text) }),
  },
  { name: "API: instruction, context and header field", send: fields },
  { name: "API: search for a phrase of it", send: search },
  { name: "model: list of models", send: listed },
  { name: "webhook: answer", send: webhook },
];

/** Through these come the shapes that are made of the structure of JSON. */
const JSON_DOORS: Door[] = [
  {
    name: "model: parts of its answer",
    send: (json) => completion(`{"role":"assistant","content":${json}}`),
  },
  { name: "model: arguments as data", send: (json) => completion(callOf(json)) },
  { name: "model: arguments as text", send: (json) => completion(callOf(JSON.stringify(`{"a":${json}}`))) },
  {
    name: "tool server: parts of a result",
    send: (json) => rpc("tools/call", `"result":{"content":${json}}`),
  },
  {
    name: "tool server: data of a result",
    send: (json) => rpc("tools/call", `"result":{"content":[],"structuredContent":{"a":${json}}}`),
  },
  {
    name: "tool server: data of an error",
    send: (json) => rpc("tools/call", `"error":{"code":1,"message":"no","data":${json}}`),
  },
  { name: "tool server: list of tools", send: (json) => rpc("tools/list", `"result":{"tools":${json}}`) },
];

interface Measured extends LoopDelays {
  shape: string;
  door: string;
  took: number;
  /** What the server said where it did not let the text in. */
  refusal: string | null;
}

await prepare();
const measured: Measured[] = [];
const started = performance.now();
await loop("/begin");
for (const [shape, unit] of shapes)
  for (const door of DOORS)
    for (const chars of door.sizes ?? [CHARS]) {
      const of_size = chars === CHARS ? shape : `${shape}, ${chars}`;
      await measure(of_size, door, textOf(unit, chars));
    }
for (const [shape, make] of structures)
  for (const chars of JSON_CHARS) {
    const json = make(chars);
    for (const door of JSON_DOORS) await measure(`${shape}, ${chars}`, door, json);
  }
const seconds = (performance.now() - started) / 1_000;
showWorst();
showDoors();
const all = await loop<LoopDelay>("/all");
const { times, failed } = (await (await fetch(`http://127.0.0.1:${livez.port}/`)).json()) as {
  times: number[];
  failed: number;
};
console.log(
  `\n${measured.length} texts in ${seconds.toFixed(0)} s, ${relayed.answers} answers mailed; /livez asked ${times.length} times, ${failed} without an answer`,
);
const worst_door = Math.max(
  ...[...DOORS, ...JSON_DOORS]
    .map(({ name }) => delaysAt(name))
    .filter((delays) => delays.length > 0)
    .map((delays) => percentile(delays, 0.99)),
);
const slowest = Math.max(...times);
noteFigure("delay of the event loop, p50", [all.p50], "ms");
noteFigure("delay of the event loop, p99 over all shapes", [all.p99], "ms");
noteFigure("delay of the event loop, p99 of the worst door", [worst_door], "ms");
noteFigure("delay of the event loop, longest", [all.max], "ms");
noteFigure("/livez, p99", [percentile(times, 0.99)], "ms");
noteFigure("/livez, slowest", [slowest], "ms");
printResults();
const closed = closedDoors();
const reached =
  Math.max(all.p99, worst_door) <= GOALS.loop_ms && slowest <= GOALS.livez_ms && failed === 0 && closed === 0;
process.exitCode = reached ? 0 : 1;

/** While any of the texts went through it. */
function delaysAt(name: string): number[] {
  return measured.flatMap(({ door, late }) => (door === name ? late : []));
}

async function measure(shape: string, { name, send }: Door, text: string): Promise<void> {
  const begun = performance.now();
  const refusal = await refusalOf(send(text));
  const took = performance.now() - begun;
  // What an answer to a mail or a webhook leaves to be done is this door's as well.
  await Bun.sleep(SETTLE_MS);
  measured.push({ shape, door: name, took, refusal, ...(await loop<LoopDelays>("/")) });
}

async function refusalOf(sending: Promise<unknown>): Promise<string | null> {
  try {
    await sending;
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Doors that let in less than half of what was sent, and of which therefore nothing is known; each is shown with its first refusal. */
function closedDoors(): number {
  let closed = 0;
  for (const { name } of [...DOORS, ...JSON_DOORS]) {
    const here = measured.filter(({ door }) => door === name);
    const refusals = here.flatMap(({ refusal }) => refusal ?? []);
    if (refusals.length > 0)
      console.log(`${name}: ${refusals.length} of ${here.length} refused: ${refusals[0]}`);
    if (refusals.length * 2 > here.length) closed += 1;
  }
  return closed;
}

function longest({ late }: LoopDelays): number {
  return late.at(-1) ?? 0;
}

function showWorst(): void {
  console.log(`\n${"the longest delays".padEnd(26)} ${"door".padEnd(40)} ${"max ms".padStart(8)}`);
  for (const text of measured.toSorted((one, other) => longest(other) - longest(one)).slice(0, WORST_SHOWN))
    console.log(`${text.shape.padEnd(26)} ${text.door.padEnd(40)} ${longest(text).toFixed(0).padStart(8)}`);
}

function showDoors(): void {
  console.log(
    `\n${"door".padEnd(40)} ${"max ms".padStart(8)} ${"p99 ms".padStart(8)} ${"took ms".padStart(8)}  its worst shape`,
  );
  for (const { name } of [...DOORS, ...JSON_DOORS]) {
    const here = measured.filter(({ door }) => door === name);
    const worst = here.toSorted((one, other) => longest(other) - longest(one))[0];
    if (worst === undefined) continue;
    const took = percentile(
      here.map((one) => one.took),
      0.5,
    );
    const figures = [longest(worst), percentile(delaysAt(name), 0.99), took];
    console.log(
      `${name.padEnd(40)} ${figures.map((figure) => figure.toFixed(0).padStart(8)).join(" ")}  ${worst.shape}`,
    );
  }
}

async function loop<Answer>(path: string): Promise<Answer> {
  return (await (await fetch(`http://127.0.0.1:${loop_port}${path}`)).json()) as Answer;
}

async function prepare(): Promise<void> {
  // What tools say is looked through for a sign-in code while one is valid.
  await ask("POST", "/auth/request-code", { email: SENDER });
  const connection = await ask("POST", "/connections", { kind: "mcp", label: "Desk", base_url: tools.url });
  const [inbox] = ((await ask("GET", "/inboxes")) as { id: string }[]) ?? [];
  await ask("PATCH", `/inboxes/${inbox?.id}`, {
    mcp_connection_ids: [(connection as { id: string }).id],
    rules: RULES,
  });
  await ask("POST", "/v1/webhooks", {
    url: `http://127.0.0.1:${hooks.port}/`,
    event_types: ["message.completed"],
  });
  const base_url = `http://127.0.0.1:${notes.port}`;
  await ask("POST", "/connections", { kind: "notes", base_url, credential: "secret_abcdefghijkl" });
  // Threads are started and libraries loaded by what comes first.
  await mail("Content-Type: text/html", "<p>Hello</p>", { answer: "x ".repeat(5_000) });
  const made = await toolCall([
    ["desk__read", {}],
    ["files__create_file", { filename: "a.html", content: "<p>" }],
  ]);
  const steps = (made as { steps: { type: string; status: string }[] }).steps;
  const done = steps.filter(({ type, status }) => type === "tool_call" && status === "ok");
  if (done.length !== 2) throw new Error(`The tools were not called: ${JSON.stringify(made)}`);
  await call({ instruction: "Do it", attachments: attached("x") });
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  { headers = {}, refused }: { headers?: Record<string, string>; refused?: number } = {},
): Promise<unknown> {
  const answer = await fetch(server.http + path, {
    method,
    headers: { "x-api-key": api_key, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok && answer.status !== refused)
    throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
  return text === "" ? undefined : JSON.parse(text);
}

async function call(body: object, says: Partial<typeof say> = {}): Promise<unknown> {
  Object.assign(say, SILENT, says);
  return ask("POST", "/v1/messages", body);
}

async function completion(message: string): Promise<void> {
  raw.completion = `{"id":"c","object":"chat.completion","created":0,"model":"hostile","choices":[{"index":0,"message":${message}}]}`;
  await call(ASKED);
}

function callOf(args: string): string {
  return `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"desk__read","arguments":${args}}}]}`;
}

async function rpc(method: string, body: string): Promise<void> {
  tools.raw[method] = body;
  if (method === "tools/list") {
    const connections = (await ask("GET", "/connections")) as { id: string; kind: string }[];
    const connection = connections.find(({ kind }) => kind === "mcp");
    await ask("POST", `/connections/${connection?.id}/test`, {});
  }
  await toolCall([["desk__read", {}]]);
  delete tools.raw[method];
}

function talk(calls: Call[], says: Partial<typeof say> = {}): Promise<unknown> {
  return call(ASKED, { ...says, rounds: [calls] });
}

function toolCall(calls: [name: string, args: object][], says: Partial<typeof say> = {}): Promise<unknown> {
  return talk(
    calls.map(([name, args]) => ({ name, arguments: JSON.stringify(args) })),
    says,
  );
}

/** Tools are listed anew by the test of a connection. */
async function describe(text: string): Promise<void> {
  const [tool] = tools.tools;
  if (tool === undefined) return;
  tools.tools[0] = {
    ...tool,
    description: text,
    inputSchema: {
      type: "object",
      description: text,
      properties: { [text.slice(0, 1_000)]: { pattern: text } },
    },
  };
  const connections = (await ask("GET", "/connections")) as { id: string; kind: string }[];
  const connection = connections.find(({ kind }) => kind === "mcp");
  await ask("POST", `/connections/${connection?.id}/test`, {});
  await toolCall([["desk__read", { day: "x" }]]);
  tools.tools[0] = tool;
}

async function fields(text: string): Promise<void> {
  const body = text.slice(0, CONTEXT_CHARS);
  const { id } = (await ask("POST", "/contexts", { kind: "knowledge", title: "x", body })) as { id: string };
  await call({ instruction: text.slice(0, INSTRUCTION_CHARS) });
  await ask("DELETE", `/contexts/${id}`);
  const headers = { "x-api-key": inHeader(text).replaceAll("\r", " ").slice(0, 8_000) };
  await ask("GET", "/auth/me", undefined, { headers, refused: 401 });
}

function strangeCalls(text: string): Promise<unknown> {
  const calls: [string, object][] = [
    ["desk__read", { q: text }],
    ["desk__read", { list: text.match(/.{1,20}/gs) }],
    ["desk__write", { [text]: 1 }],
    [text, {}],
  ];
  return talk([
    ...calls.map(([name, args]) => ({ name, arguments: JSON.stringify(args) })),
    { name: "desk__read", arguments: text },
  ]);
}

/** As long as a text may be that is looked through, and longer. */
function packedCalls(text: string): Promise<unknown> {
  const short = text.slice(0, PACKED_CHARS);
  const bodies = [
    text,
    `[${text}`,
    JSON.stringify([short]),
    `<a>${short}</a>`,
    `a=b&c=${short}`,
    Buffer.from(short).toString("base64"),
  ];
  return toolCall(bodies.map((body) => ["desk__write", { body }]));
}

function madeFiles(text: string): Promise<unknown> {
  return toolCall(
    ENDINGS.map((ending) => ["files__create_file", { filename: `a.${ending}`, content: text }]),
  );
}

/** A title and parts of it, held against a macro that has the text over and over. */
async function titles(text: string): Promise<void> {
  const body = `${text.slice(0, CONTEXT_CHARS)}${"\n{{input}}".repeat(MACRO_PLACES)}`;
  const macro = { kind: "command", title: "x", slug: "hostile", body };
  const { id } = (await ask("POST", "/contexts", macro)) as { id: string };
  const parts = Array.from({ length: TITLES }, (_, nth) => `A ${text.slice(0, 4 * nth)}`.trim());
  const append = { page_id: pageId(TITLES - 1), markdown: "x" };
  const done = await call(
    {
      instruction: `@notes $hostile to the ${parts.at(-1)} ${text}`.slice(0, INSTRUCTION_CHARS),
      content: "x",
    },
    {
      titles: parts,
      rounds: [
        [{ name: "notes__search", arguments: JSON.stringify({ query: "A" }) }],
        [{ name: "notes__append", arguments: JSON.stringify(append) }],
      ],
    },
  );
  await ask("DELETE", `/contexts/${id}`);
  const { steps } = done as { steps: { name?: string }[] };
  if (!steps.some(({ name }) => name === "append")) throw new Error("Nothing was to be written to a page");
}

function pageId(nth: number): string {
  return `00000000-0000-4000-8000-${String(nth).padStart(12, "0")}`;
}

function attached(text: string): object[] {
  const types = { "a.txt": "text/plain", "a.html": "text/html", "a.ics": "text/calendar" };
  return Object.entries(types).map(([filename, content_type]) => ({
    filename,
    content_type,
    data: Buffer.from(text).toString("base64"),
  }));
}

/** As many files as a mail may have, each with a name of a piece of the text, as long as one may be. */
function filesNamed(text: string): string {
  const line = text.replaceAll(/[\r\n]+/g, " ");
  const pieces = Array.from({ length: FILES }, (_, nth) => {
    const name = encodeURIComponent(`${nth} ${line.slice(nth * 3, nth * 3 + NAME_CHARS)}.txt`.toWellFormed());
    return `--b\r\nContent-Type: application/x-any\r\nContent-Disposition: attachment; filename*=UTF-8''${name}\r\n\r\nx\r\n`;
  });
  return `--b\r\n${PLAIN}\r\n\r\n${text.slice(0, PACKED_CHARS)}\r\n${pieces.join("")}--b--\r\n`;
}

/** The texts of all doors before are what is looked through. */
async function search(text: string): Promise<void> {
  const words = text.slice(0, PHRASE_CHARS).replaceAll('"', " ");
  const query = new URLSearchParams({ q: `"${words}" ${words.slice(0, 10)}`, sort: "rank" });
  // Some shapes have more words than a search may.
  await ask("GET", `/messages?${query.toString()}`, undefined, { refused: 422 });
}

/** The models that a server of an account's own says it has. */
async function listed(text: string): Promise<void> {
  const names = Array.from({ length: text.length / NAME_CHARS }, (_, nth) =>
    text.slice(nth * NAME_CHARS, (nth + 1) * NAME_CHARS),
  );
  say.models = names;
  await ask("POST", "/connections/test", {
    kind: "openai_compatible",
    base_url: `http://127.0.0.1:${model.port}/v1`,
    api_key: text.slice(0, 100).replaceAll(/[^\x21-\x7e]/g, "k"),
    default_model: "hostile",
  });
  say.models = [];
}

async function webhook(text: string): Promise<void> {
  const before = heard.events;
  await call({ instruction: "Do it" }, { hook: text });
  const until = performance.now() + ANSWER_WITHIN_MS;
  while (performance.now() < until && heard.events === before) await Bun.sleep(5);
  if (heard.events === before) throw new Error("No event came to the endpoint");
}

/** A mail of the owner; a stranger of the same text would get the same reading, and no answer. */
async function mail(fields: string, body: string, says: Partial<typeof say> = {}): Promise<void> {
  Object.assign(say, SILENT, says);
  const to = fields.includes("\r\nTo:") ? "" : `To: ${address}\r\n`;
  const subject = fields.includes("Subject:") ? "" : "Subject: x\r\n";
  const head = `From: Ada <${SENDER}>\r\n${to}${subject}Message-ID: <h${++serial}@client.example>\r\nMIME-Version: 1.0\r\n`;
  relayed.arrived = false;
  const code = await speak(server.smtp_port, {
    from: SENDER,
    to: address,
    mail: `${head}${fields}\r\n\r\n${body}`,
  });
  if (code !== 250) return;
  const until = performance.now() + (says.answer === undefined ? ANSWER_WITHIN_MS : LONG_ANSWER_WITHIN_MS);
  while (performance.now() < until && !relayed.arrived) await Bun.sleep(5);
}

/** From an address that proves nothing, so that its signature and its records are looked at. */
function stranger(fields: string, body: string): Promise<number> {
  const from = "eve@stranger.example";
  const head = `From: Eve <${from}>\r\nTo: ${address}\r\nSubject: x\r\nMessage-ID: <h${++serial}@stranger.example>\r\nMIME-Version: 1.0\r\n`;
  const source = "127.0.0.2";
  return speak(server.smtp_port, {
    from,
    to: address,
    source,
    mail: `${SIGNATURE}${head}${fields}\r\n\r\n${body}`,
  });
}

function signaturesOf(text: string): string {
  const names = [
    "DKIM-Signature",
    "ARC-Seal",
    "ARC-Message-Signature",
    "ARC-Authentication-Results",
    "Received-SPF",
  ];
  const part = inHeader(text).slice(0, HEADER_CHARS / names.length);
  return [...names.map((name) => `${name}: i=1; ${part}`), PLAIN].join("\r\n");
}

function publicKey(): string {
  const { publicKey: key } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  return key.export({ type: "spki", format: "der" }).toString("base64");
}

function bounce(fields: string, body: string): Promise<number> {
  const head = `From: Mail <mailer-daemon@client.example>\r\nTo: ${address}\r\nSubject: x\r\nMessage-ID: <h${++serial}@client.example>\r\nMIME-Version: 1.0\r\n`;
  return speak(server.smtp_port, { from: "", to: address, mail: `${head}${fields}\r\n\r\n${body}` });
}

function inHeader(text: string): string {
  return (
    text
      .replaceAll(/\r?\n/g, " ")
      .replaceAll(/[^\x20-\x7e\t\r]/g, "?")
      .slice(0, HEADER_CHARS) || "x"
  );
}

function fieldsOf(text: string): string {
  const names = ["Subject", "To", "References", "Auto-Submitted", "DKIM-Signature", "Authentication-Results"];
  const part = inHeader(text).slice(0, HEADER_CHARS / names.length);
  return names.map((name) => `${name}: ${part}`).join("\r\n");
}

function partsOf(text: string): string {
  const parts = PARTS.map(([type, before]) => `--b\r\nContent-Type: ${type}\r\n\r\n${before}${text}\r\n`);
  return `${parts.join("")}--b--\r\n`;
}

/** Answers with what is to be said: first the calls, where there are any and tools are offered, then the words. */
function startModel(): AsyncDisposable & { port: number } {
  const http = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      if (request.method === "GET") return Response.json({ data: say.models.map((id) => ({ id })) });
      const { messages } = (await request.json()) as { messages: { tool_calls?: unknown }[] };
      const whole = raw.completion;
      raw.completion = "";
      if (whole !== "") return new Response(whole, { headers: { "content-type": "application/json" } });
      const calls = say.rounds[messages.filter(({ tool_calls }) => tool_calls !== undefined).length] ?? [];
      const tool_calls = calls.map((given, index) => ({
        id: `call${index}`,
        type: "function",
        function: given,
      }));
      const message = {
        role: "assistant",
        ...(calls.length > 0 ? { content: null, tool_calls } : { content: say.answer }),
      };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const choices = [{ index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }];
      return Response.json({
        id: "c",
        object: "chat.completion",
        created: 0,
        model: "hostile",
        choices,
        usage,
      });
    },
  });
  return { port: http.port ?? 0, [Symbol.asyncDispose]: () => http.stop(true) };
}

/** Notion, as far as a search goes: it has pages of the titles that are to be said. */
function startNotes(): AsyncDisposable & { port: number } {
  const http = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      Response.json({
        results: say.titles.map((title, nth) => ({
          object: "page",
          id: pageId(nth),
          title: [{ plain_text: title }],
        })),
        has_more: false,
      }),
  });
  return { port: http.port ?? 0, [Symbol.asyncDispose]: () => http.stop(true) };
}

function startReceiver(onEvent: () => void): AsyncDisposable & { port: number } {
  const http = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      onEvent();
      return new Response(say.hook);
    },
  });
  return { port: http.port ?? 0, [Symbol.asyncDispose]: () => http.stop(true) };
}
