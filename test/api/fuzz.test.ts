import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ensureUser } from "../../src/resources/accounts/accounts.ts";
import { startSession } from "../../src/resources/accounts/sessions.ts";
import { type OpenApiDocument, openApiOf } from "../../src/http/openapi.ts";
import type { Json } from "../../src/http/openapi-schema.ts";
import { createHttp } from "../../src/api.ts";
import { type Caller, type TestApp, testApp } from "../support/app.ts";
import { storeApproval } from "../support/approvals.ts";
import { seedFrom } from "../support/chance.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { bodiesOf, type Known, oddValue, wordsOf } from "../support/fuzz.ts";

/** For all operations together; FUZZ_SECONDS=600 looks for longer. */
const SECONDS = Number(process.env["FUZZ_SECONDS"] ?? 3);
/** FUZZ_SEED=… does again what an earlier run did, as far as its time went. */
const SEED = seedFrom("FUZZ_SEED", "fuzz");
const LEAVER = "eve@example.com";
/** However slow the machine is. */
const MIN_RUNS = 3;

const UNLIMITED = {
  replies_per_conversation_hour: 0,
  code_per_email_hour: 0,
  code_per_ip_hour: 0,
  verify_per_ip_hour: 0,
  login_per_ip_hour: 0,
  login_failures: 0,
  contact_per_ip_hour: 0,
  contact_per_ip_day: 0,
  inbox_test_per_hour: 0,
  inbox_rotate_per_day: 0,
  vcard_mail_per_hour: 0,
};

const document = await documentOfRoutes();
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);
type Operation = (typeof operations)[number];

let dns: TestDnsServer;
let t: TestApp;
let ada: Caller;
let leaving: Caller | undefined;
/** What she has to be asked for; read as often as one likes, and made anew once it may have been changed. */
let furniture: Record<string, string> | undefined;

beforeAll(async () => {
  // Nobody outside of this machine is asked: no name leads anywhere.
  dns = await startDnsServer();
  t = await testApp({
    dns: { servers: [dns.address] },
    llm: { kind: "demo" },
    limits: UNLIMITED,
    plans: {
      team: {
        credits: 1_000_000,
        route_per_minute: 0,
        api_per_minute: 0,
        inboxes: 10_000,
        connections: 10_000,
        contexts: 10_000,
        custom_domains: 10_000,
        api_keys: 10_000,
      },
    },
  });
  ada = await t.as("ada@example.com");
  console.log(`fuzz: ${operations.length} operations in ${SECONDS} seconds`);
});

afterAll(async () => {
  await t[Symbol.asyncDispose]();
  await dns[Symbol.asyncDispose]();
});

describe("whatever is sent, the answer is one that the document names, and never a 5xx", () => {
  test.each(operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
    "%s",
    async (_name, operation) => {
      // What is counted by the hour in the code itself is free again.
      t.clock.advance("2h");
      await letGo();
      furniture ??= await furnish();
      const own = await ownOf(operation, furniture);
      if (operation.method !== "GET") furniture = undefined;
      const end = Date.now() + (SECONDS * 1_000) / operations.length;
      const property = fc.asyncProperty(requestsTo(operation, own), async (request) => {
        const caller = operation.path === "/auth/account" ? await leaver() : ada;
        const { path, signed, headers, ...init } = request;
        const credential: Record<string, string> = signed ? { "x-api-key": caller.key } : {};
        // That the document names the answer is what every request of a test is held to.
        const answer = await t.request(path, { ...init, headers: { ...credential, ...headers } });
        expect(answer.status).toBeLessThan(500);
        // Later calls would wait for what was only accepted.
        if (answer.status === 202) await t.drain();
      });
      await fc.assert(property, { seed: SEED, numRuns: MIN_RUNS });
      const rest = { numRuns: 1_000_000, interruptAfterTimeLimit: end - Date.now() };
      const outcome = await fc.check(property, { seed: SEED + 1, ...rest });
      if (outcome.counterexample !== null) throw new Error(await fc.asyncDefaultReportMessage(outcome));
    },
    60_000 + SECONDS * 1_000,
  );

  test("afterwards all work is done, and everything still goes on", async () => {
    await letGo();
    await t.drain();
    expect((await ada.get("/auth/me")).body.email).toBe("ada@example.com");
    const message = await makeMessage();
    expect(message.status).toBe("done");
  }, 60_000);
});

interface FuzzRequest {
  path: string;
  method: string;
  headers: Record<string, string>;
  body?: string | FormData;
  signed: boolean;
}

function requestsTo(operation: Operation, own: Record<string, string>): fc.Arbitrary<FuzzRequest> {
  const about = { schemas: document.components.schemas, own };
  const parameters = operation.operation["parameters"] as (Json & {
    in: string;
    name: string;
    schema: Json;
  })[];
  const of = (place: string) => parameters.filter((parameter) => parameter.in === place);
  const inPath = of("path").map(({ name, schema }) => {
    const odd = wordsOf(name, schema, about).map((word) =>
      encodeURIComponent(word.toWellFormed().slice(0, 2_000)),
    );
    // These lead to another address before anybody sees them.
    const apart = odd.filter((word) => !/^\.{0,2}$/.test(word));
    return fc.oneof({ weight: 3, arbitrary: fc.constant(own[name] ?? "x") }, { weight: 1, arbitrary: apart });
  });
  const inQuery = Object.fromEntries(
    of("query").map(({ name, schema }) => [name, wordsOf(name, schema, about)]),
  );
  const inHeader = Object.fromEntries(
    of("header").map(({ name, schema }) => [
      name.toLowerCase(),
      wordsOf(name, schema, about).map(headerWord),
    ]),
  );
  return fc
    .record({
      inPath: fc.tuple(...inPath),
      query: fc.record(inQuery, { requiredKeys: [] }),
      more: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: MORE_QUERY }),
      headers: fc.record({ ...ODD_HEADERS, ...inHeader }, { requiredKeys: [] }),
      body: bodyOf(operation, about),
      signed: fc.oneof(
        { weight: 19, arbitrary: fc.constant(true) },
        { weight: 1, arbitrary: fc.constant(false) },
      ),
      slash: fc.constantFrom("", "", "", "/"),
    })
    .map(({ inPath, query, more, headers, body, signed, slash }) => {
      let next = 0;
      const path = operation.path.replaceAll(/\{\w+\}/g, () => inPath[next++] ?? "");
      const words = { ...query, ...more } as Record<string, string>;
      const search = Object.entries(words)
        .map(([name, word]) => `${encodeURIComponent(name)}=${encodeURIComponent(word.toWellFormed())}`)
        .join("&");
      return {
        path: `${path}${slash}${search === "" ? "" : `?${search}`}`,
        method: operation.method,
        headers: { ...body.headers, ...(headers as Record<string, string>) },
        ...(body.content === undefined ? {} : { body: body.content }),
        signed,
      };
    });
}

interface FuzzBody {
  headers: Record<string, string>;
  content?: string | FormData;
}

function bodyOf(operation: Operation, about: Known): fc.Arbitrary<FuzzBody> {
  if (operation.method === "GET") return fc.constant({ headers: {} });
  const content = (operation.operation["requestBody"] as Json | undefined)?.["content"] as Record<
    string,
    Json
  >;
  const schema = content?.["application/json"]?.["schema"] as Json | undefined;
  const json = fc.record({
    headers: fc.oneof(
      { weight: 9, arbitrary: fc.constant({ "content-type": "application/json" }) },
      { weight: 1, arbitrary: ODD_TYPES.map((type) => ({ "content-type": type })) },
    ),
    content: schema ? bodiesOf(schema, about) : oddValue.map((value) => JSON.stringify(value)),
  });
  if (schema) return json;
  const form = content?.["multipart/form-data"];
  if (form) return fc.oneof({ weight: 4, arbitrary: FORMS }, { weight: 1, arbitrary: json });
  return fc.oneof({ weight: 3, arbitrary: fc.constant({ headers: {} }) }, { weight: 1, arbitrary: json });
}

const ODD_TYPES = fc.constantFrom(
  "text/plain",
  "application/xml",
  "application/json; charset=utf-16",
  "application/vnd.api+json",
  "multipart/form-data",
  "multipart/form-data; boundary=x",
  "application/x-www-form-urlencoded",
  "json",
  ";",
);

const FORMS: fc.Arbitrary<FuzzBody> = fc
  .record({
    part: fc.constantFrom("file", "file", "file", "File", "upload", "__proto__", ""),
    name: fc.oneof(
      fc.constantFrom("notes.md", "", ".md", "a/b\\c.md"),
      fc.string({ unit: "grapheme", maxLength: 300 }),
    ),
    bytes: fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 200 }).map((text) => new TextEncoder().encode(text)),
      fc.string({ maxLength: 60 }).map((text) => new TextEncoder().encode(`# ${text}\n\nBody.`)),
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom(262_144, 262_145, 530_000).map((size) => new Uint8Array(size).fill(97)),
    ),
    as_file: fc.oneof(
      { weight: 4, arbitrary: fc.constant(true) },
      { weight: 1, arbitrary: fc.constant(false) },
    ),
    twice: fc.boolean(),
  })
  .map(({ part, name, bytes, as_file, twice }) => {
    const form = new FormData();
    for (let count = 0; count <= Number(twice); count++) {
      if (as_file) form.append(part, new File([new Uint8Array(bytes)], name.toWellFormed()));
      else form.append(part, new TextDecoder().decode(bytes));
    }
    return { headers: {}, content: form };
  });

const MORE_QUERY = fc.dictionary(fc.string({ minLength: 1, maxLength: 12 }), fc.string({ maxLength: 30 }), {
  maxKeys: 3,
});

/** A header holds one line of bytes. */
function headerWord(word: string): string {
  return word
    .replaceAll(/[^\x20-\x7e\xa0-\xff]/g, "?")
    .trim()
    .slice(0, 4_000);
}

const anyHeader = fc.string({ unit: "binary", maxLength: 60 }).map(headerWord);
const ODD_HEADERS = Object.fromEntries(
  [
    "x-request-id",
    "prefer",
    "idempotency-key",
    "accept",
    "if-none-match",
    "range",
    "user-agent",
    "cookie",
  ].map((name) => [
    name,
    fc.oneof({ weight: 1, arbitrary: anyHeader }, { weight: 3, arbitrary: fc.constant("x") }),
  ]),
);

/** Something of hers for the ids of paths and bodies. */
async function furnish(): Promise<Record<string, string>> {
  const inbox_id = (await ada.post("/inboxes", {})).body.id;
  const message = await makeMessage(inbox_id);
  await makeMessage(inbox_id);
  return {
    inbox_id,
    connection_id: (await ada.post("/connections", { kind: "demo" })).body.id,
    context_id: (await ada.post("/contexts", { title: "A", body: "B", kind: "knowledge" })).body.id,
    schedule_id: (await ada.post("/v1/schedules", { instruction: "Say hello.", every: "daily" })).body.id,
    approval_id: await storeApproval(t, { user_id: ada.user.id, inbox_id, message_id: message.message_id }),
    replay_id: (await ada.post(`/messages/${message.message_id}/replay`, {})).body.id,
    recipe_id: "email-summarizer",
    provider: "notes",
    confirm: LEAVER,
    id: message.message_id,
    message_id: message.message_id,
    conversation_id: message.conversation_id,
    // Not by its place in the list: a schedule of an earlier one may have run meanwhile.
    attachment_id: (await ada.get(`/messages/${message.message_id}`)).body.attachments[0].id,
    cursor: (await ada.get("/messages?limit=1")).body.next_cursor,
  };
}

/** Besides, what is dear to make or stands in the way, for the operations whose path names it. */
async function ownOf(
  { path }: Operation,
  furniture: Record<string, string>,
): Promise<Record<string, string>> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const own = { ...furniture };
  if (names.includes("key_id")) own["key_id"] = (await ada.post("/auth/api-key", {})).body.id;
  if (names.includes("session_id")) own["session_id"] = await freshSession();
  if (path.startsWith("/admin/")) Object.assign(own, await administered());
  if (path.startsWith("/v1/webhooks")) Object.assign(own, await freshHook());
  if (path.startsWith("/v1/test-")) own["test_run_id"] = await freshTestRun(own["message_id"] ?? "");
  if (names.includes("domain_id"))
    own["domain_id"] = (
      await ada.post("/custom-domains", { domain: `${Bun.randomUUIDv7()}.example.com` })
    ).body.id;
  if (names.includes("version")) own["version"] = "1";
  for (const name of names) if (!own[name]) throw new Error(`furnish has nothing for {${name}} of ${path}`);
  return own;
}

/** A run of one message: the messages of a run have a bound, and so have the runs that are kept. */
async function freshTestRun(message_id: string): Promise<string> {
  await t.app.db.deleteFrom("starred_messages").execute();
  for (const { id } of (await ada.get("/v1/test-runs")).body as { id: string }[])
    await ada.delete(`/v1/test-runs/${id}`);
  await ada.patch(`/messages/${message_id}`, { expected: { contains: "read" } });
  const { id } = (await ada.post("/v1/test-runs", {})).body;
  await t.drain();
  return id;
}

async function freshSession(): Promise<string> {
  const browser = { by_code: false, client: "192.0.2.7", user_agent: "Test" };
  await t.app.write((tx) => startSession(t.app, tx, { user_id: ada.user.id, ...browser }));
  return (await ada.get("/auth/sessions")).body[0].id;
}

/** Releases what an administrator has held: she would wait for it. */
async function letGo(): Promise<void> {
  await t.app.write((tx) => tx.deleteFrom("held_kinds").execute());
}

/** What she administers: an account that nobody needs, a job, and a mail. */
async function administered(): Promise<Record<string, string>> {
  const [spare, job, mail] = await Promise.all([
    t.app.write((tx) => ensureUser(t.app, tx, "spare@example.com")),
    t.app.db.selectFrom("jobs").select("id").executeTakeFirst(),
    t.app.db.selectFrom("outgoing_mails").select("id").executeTakeFirst(),
  ]);
  const none = Bun.randomUUIDv7();
  return { user_id: spare.id, job_id: job?.id ?? none, mail_id: mail?.id ?? none };
}

/** The only one: every message would be told to all that are left from before. */
async function freshHook(): Promise<Record<string, string>> {
  for (const { id } of (await ada.get("/v1/webhooks")).body as { id: string }[])
    await ada.delete(`/v1/webhooks/${id}`);
  const hook = { url: "https://hooks.example.com/", event_types: ["*"] };
  const { id } = (await ada.post("/v1/webhooks", hook)).body;
  return { id, delivery_id: (await ada.post(`/v1/webhooks/${id}/test`)).body.delivery.id };
}

async function makeMessage(inbox_id?: string) {
  const inbox = inbox_id ?? (await ada.post("/inboxes", {})).body.id;
  const attachments = [{ filename: "a.txt", content_type: "text/plain", data: btoa("hello") }];
  return (await ada.post("/v1/messages", { instruction: "Read it", inbox_id: inbox, attachments })).body;
}

/** Has an account that may be deleted: a new one as often as it was. */
async function leaver(): Promise<Caller> {
  leaving = leaving && (await leaving.get("/auth/me")).status === 200 ? leaving : await t.as(LEAVER);
  return leaving;
}

async function documentOfRoutes(): Promise<OpenApiDocument> {
  await using app = await testApp();
  const { routes } = createHttp(app.app, { ready: async () => ({}) });
  return JSON.parse(JSON.stringify(openApiOf(routes))) as OpenApiDocument;
}
