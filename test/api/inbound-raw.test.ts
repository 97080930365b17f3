import { createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHttp } from "../../src/api.ts";
import { readBytes } from "../../src/resources/messages/stored-bytes.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { type Mailroom, mailroom, READS_ANYBODY, signedBy, signingZone } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const CLIENT = "192.0.2.10";

let dns: TestDnsServer;
let room: Mailroom;

beforeAll(async () => {
  dns = await startDnsServer({
    ...signingZone("example.com", "v=DMARC1; p=reject"),
    "spf.example": { TXT: [`v=spf1 ip4:${CLIENT} -all`] },
    "_dmarc.spf.example": { TXT: ["v=DMARC1; p=reject"] },
  });
  room = await mailroom({
    inbox: READS_ANYBODY,
    config: {
      dns: { servers: [dns.address] },
      inbound: { secret: SECRET },
      smtp: { max_message_bytes: 100_000 },
      limits: { smtp_mails_per_ip_hour: 20, replies_per_sender_hour: 0, same_body_per_hour: 0 },
    },
  });
});

afterAll(async () => {
  await room[Symbol.asyncDispose]();
  await dns[Symbol.asyncDispose]();
});

interface Request {
  mail?: Buffer;
  envelope?: string;
  /** Unix seconds at which it was signed. */
  time?: number;
  secret?: string;
  signature?: string;
  /** The address that a proxy names. */
  client?: string;
}

function signatureOf({
  mail,
  envelope,
  time,
  secret,
}: Required<Omit<Request, "signature" | "client">>): string {
  const v1 = createHmac("sha256", secret).update(`${time}.${envelope}.`).update(mail).digest("hex");
  return `t=${time},v1=${v1}`;
}

function handIn(given: Request) {
  const request = {
    mail: fromOwner(),
    envelope: `rcpt_to=${encodeURIComponent(room.inbox.address)}&mail_from=ada%40example.com`,
    time: room.app.now(),
    secret: SECRET,
    ...given,
  };
  return room.request("/inbound/raw", {
    method: "POST",
    headers: {
      "content-type": "message/rfc822",
      "service-envelope": request.envelope,
      "service-signature": given.signature ?? signatureOf(request),
      ...(given.client === undefined ? {} : { "x-forwarded-for": given.client }),
    },
    body: request.mail,
  });
}

const fromOwner = (subject = "Hello"): Buffer =>
  rawMail({
    from: "Ada <ada@example.com>",
    to: room.inbox.address,
    subject,
    headers: { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` },
  });

const rcpt = (...addresses: string[]): string =>
  [
    "mail_from=eve%40example.net",
    ...addresses.map((address) => `rcpt_to=${encodeURIComponent(address)}`),
  ].join("&");

const stored = async (): Promise<number> =>
  (await room.app.db.selectFrom("raw_mails").select("id").execute()).length;

describe("POST /inbound/raw", () => {
  test("takes a mail signed by its author as SMTP would, and it is worked on", async () => {
    const mail = await signedBy("example.com", fromOwner("Signed"));
    const { status, body } = await handIn({ mail });
    expect(status).toBe(200);
    expect(body.recipients).toEqual([
      {
        recipient: room.inbox.address,
        status: "accepted",
        code: 250,
        enhanced: "2.6.0",
        text: "Message accepted",
      },
    ]);
    const message = await room.newest();
    expect(message).toMatchObject({ subject: "Signed", authority: "owner", source: "email" });
    expect(JSON.parse(message.auth ?? "")).toMatchObject({ dkim: "pass", dmarc: "pass", spf: "none" });
    const raw = await room.app.db
      .selectFrom("raw_mails")
      .selectAll()
      .where("id", "=", message.raw_mail_id)
      .executeTakeFirstOrThrow();
    expect(Buffer.from((await readBytes(room.app, "raw_mails", raw)) ?? []).equals(mail)).toBe(true);
    await room.drain();
    expect((await room.newest()).state).toBe("done");
  });

  test("judges SPF by the client that the envelope names", async () => {
    const mail = (): Buffer => rawMail({ from: "Bo <bo@spf.example>", to: room.inbox.address });
    const envelope = `rcpt_to=${encodeURIComponent(room.inbox.address)}&mail_from=bo%40spf.example&helo=mx.spf.example`;
    const forged = await handIn({ mail: mail(), envelope: `${envelope}&remote_ip=198.51.100.7` });
    expect(forged.body.recipients[0]).toMatchObject({ status: "refused", code: 550, enhanced: "5.7.26" });
    const unknown = await handIn({ mail: mail(), envelope });
    expect(unknown.body.recipients[0]).toMatchObject({ status: "refused", enhanced: "5.7.26" });
    const genuine = await handIn({ mail: mail(), envelope: `${envelope}&remote_ip=${CLIENT}` });
    expect(genuine.body.recipients[0]).toMatchObject({ status: "accepted" });
    expect(JSON.parse((await room.newest()).auth ?? "")).toMatchObject({ spf: "pass", dmarc: "pass" });
  });

  test("says for each recipient what became of it", async () => {
    const { body: picky } = await room.owner.post("/inboxes", { allowlist_senders: ["boss@example.com"] });
    const mail = rawMail({ from: "eve@example.net", to: room.inbox.address });
    const envelope = rcpt(room.inbox.address, "nobody@mw.test", "x@elsewhere.test", picky.address);
    const { status, body } = await handIn({ mail, envelope });
    expect(status).toBe(200);
    expect(
      body.recipients.map((one: { status: string; enhanced: string }) => [one.status, one.enhanced]),
    ).toEqual([
      ["accepted", "2.6.0"],
      ["refused", "5.1.1"],
      ["refused", "5.7.1"],
      ["refused", "5.7.1"],
    ]);
    expect(body.recipients[3].text).toContain("listed senders only");
  });

  test("takes the same request twice as one mail", async () => {
    const mail = await signedBy("example.com", fromOwner("Twice"));
    const before = await stored();
    for (const _ of [1, 2]) expect((await handIn({ mail })).body.recipients[0].status).toBe("accepted");
    expect(await stored()).toBe(before + 1);
    expect((await room.newest()).duplicates).toBe(1);
  });

  test("refuses what is not signed, or not with the secret, or over other bytes", async () => {
    const before = await stored();
    const request = {
      mail: fromOwner(),
      envelope: rcpt(room.inbox.address),
      time: room.app.now(),
      secret: SECRET,
    };
    const good = signatureOf(request);
    const wrong: [Request, string][] = [
      [{ signature: "" }, "no time"],
      [{ signature: "v1=00" }, "no time"],
      [{ signature: `t=${request.time}` }, "does not fit"],
      [{ signature: `t=${request.time},v1=${"0".repeat(64)}` }, "does not fit"],
      [{ secret: "another secret that is long enough" }, "does not fit"],
      [
        { ...request, mail: Buffer.concat([request.mail, Buffer.from("x")]), signature: good },
        "does not fit",
      ],
      [{ ...request, envelope: rcpt("b@mw.test"), signature: good }, "does not fit"],
      [{ time: request.time - 301 }, "301 seconds ago"],
      [{ time: request.time + 301 }, "301 seconds in the future"],
    ];
    for (const [given, words] of wrong) {
      const { status, body } = await handIn(given);
      expect([status, body.code]).toEqual([400, "invalid_signature"]);
      expect(body.detail).toContain(words);
    }
    expect(await stored()).toBe(before);
    expect((await handIn({ ...request, signature: `${good},v1=${"0".repeat(64)}` })).status).toBe(200);
    expect((await handIn({ time: request.time - 299 })).status).toBe(200);
  });

  test("refuses a request without a body that is not signed, and takes none that is", async () => {
    const headers = { "service-envelope": rcpt(room.inbox.address) };
    const bare = await room.request("/inbound/raw", { method: "POST", headers });
    expect([bare.status, bare.body.code]).toEqual([400, "invalid_signature"]);
    const { body } = await handIn({ mail: Buffer.alloc(0) });
    expect(body.recipients[0]).toMatchObject({ status: "refused", enhanced: "5.6.0" });
    const typed = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: "{}" };
    expect((await room.request("/inbound/raw", typed)).body.code).toBe("invalid_signature");
  });

  test("names the fault of an envelope", async () => {
    const at = room.inbox.address;
    const wrong: [string, string][] = [
      ["", ".rcpt_to must name a recipient"],
      ["mail_from=a%40b.test", ".rcpt_to must name a recipient"],
      ["rcpt_to=", ".rcpt_to must name a recipient"],
      [`rcpt_to=desk+tag@mw.test`, 'a "+" must be sent as "%2B"'],
      [`${rcpt(at)}&remote_ip=mx.example.com`, ".remote_ip must be an IP address"],
      [`${rcpt(at)}&helo=a%0Ab`, ".helo is no name"],
      [`rcpt_to=a%40b.test`, ".mail_from must name the sender"],
      [`rcpt_to=a%40b.test&mail_from=a%0D%0Ab%40c.test`, ".mail_from is no mail address"],
      [rcpt(...Array.from({ length: 101 }, (_, index) => `a${index}@mw.test`)), "100 recipients at most"],
      [`${rcpt(at)}&x=${"x".repeat(40_000)}`, "is too long"],
    ];
    for (const [envelope, words] of wrong) {
      const { status, body } = await handIn({ envelope });
      expect([status, body.code]).toEqual([422, "validation_error"]);
      expect(body.detail).toContain(words);
      expect(body.errors[0].path).toStartWith("header.service-envelope");
    }
  });

  test("refuses a header that two readers could read differently, as SMTP would", async () => {
    const text = "From: ada@example.com\r\nX-Any: thing\r\n\xa0Content-Type: text/html\r\n\r\nHello\r\n";
    const { body } = await handIn({ mail: Buffer.from(text, "latin1") });
    expect(body.recipients[0]).toMatchObject({
      status: "refused",
      enhanced: "5.6.0",
      text: expect.stringContaining("its line 3 is neither a field nor the continuation of one"),
    });
  });

  test("refuses a mail that is larger than the SMTP door takes", async () => {
    const { status, body } = await handIn({ mail: Buffer.alloc(100_001, "x") });
    expect([status, body.code]).toEqual([413, "payload_too_large"]);
  });

  test("is not closed by who announces large mails, or sends half of them, without a signature", async () => {
    const announce = (sent: number) => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      void writer.write(new Uint8Array(sent)).catch(() => undefined);
      const headers = { "content-type": "message/rfc822", "content-length": "100000" };
      const answer = room.request("/inbound/raw", { method: "POST", headers, body: readable });
      return { answer, end: () => writer.close() };
    };
    const promises = Array.from({ length: 9 }, () => announce(1));
    expect((await handIn({ envelope: rcpt("nobody@mw.test") })).status).toBe(200);
    // The largest of those that hold much has to go.
    const large = Array.from({ length: 9 }, (_, index) => announce(90_000 + index));
    expect((await handIn({ envelope: rcpt("nobody@mw.test") })).status).toBe(200);
    const codes = await Promise.all(
      [...promises, ...large].map(async ({ answer, end }) => {
        await end().catch(() => undefined);
        const { status } = await answer;
        return status;
      }),
    );
    expect(codes.filter((code) => code === 503)).toHaveLength(1);
    expect(codes.filter((code) => code === 400)).toHaveLength(17);
  });

  test("takes a large mail while somebody else holds all of the room with smaller ones that do not end", async () => {
    const stalled = Array.from({ length: 20 }, () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      void writer.write(new Uint8Array(60_000)).catch(() => undefined);
      const headers = { "content-type": "message/rfc822", "x-forwarded-for": "198.51.100.9" };
      const answer = room.request("/inbound/raw", { method: "POST", headers, body: readable });
      return { answer, end: () => writer.close() };
    });
    await Bun.sleep(50);
    const mail = Buffer.concat([fromOwner("Large"), Buffer.alloc(90_000, "x\r\n")]);
    const envelope = rcpt("nobody@mw.test");
    expect((await handIn({ mail, envelope, client: "192.0.2.77" })).status).toBe(200);
    await Promise.all(
      stalled.map(async ({ answer, end }) => {
        await end().catch(() => undefined);
        await answer;
      }),
    );
  });

  test("asks to keep the mail where it cannot be judged now, and keeps nothing of it", async () => {
    const before = await stored();
    dns.fault("_dmarc.slow.example", "servfail");
    const mail = rawMail({ from: "a@slow.example", to: room.inbox.address });
    const { status, body, headers } = await handIn({ mail });
    expect([status, body.code]).toEqual([503, "unavailable"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(body.detail).toContain("DNS does not answer");
    expect(await stored()).toBe(before);
  });

  test("counts the mails of a client as the SMTP door does", async () => {
    const envelope = `${rcpt("nobody@mw.test")}&remote_ip=203.0.113.77`;
    for (let mail = 0; mail < 20; mail++) expect((await handIn({ envelope })).status).toBe(200);
    const { status, body } = await handIn({ envelope });
    expect([status, body.code]).toEqual([503, "unavailable"]);
    expect(body.detail).toContain("20 mails in an hour");
    expect((await handIn({ envelope: `${rcpt("nobody@mw.test")}&remote_ip=203.0.113.78` })).status).toBe(200);
  });

  test("is closed where no secret is set, and says so", async () => {
    await using closed = await mailroom();
    const { status, body } = await closed.request("/inbound/raw", { method: "POST", body: "x" });
    expect([status, body.code]).toEqual([400, "inbound_not_configured"]);
    expect(body.fix).toContain("openssl rand -hex 32");
  });
});

describe("the programs of /docs/inbound", () => {
  let url: string;
  let dir: string;
  let page: string;
  const server = { stop: async (): Promise<void> => {} };

  beforeAll(async () => {
    // They sign by the clock on the wall.
    const app = { ...room.app, wallMs: Date.now };
    const http = createHttp(app, { ready: async () => ({ database: "ok" }) });
    const listener = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => http.handle(request) });
    server.stop = () => listener.stop(true);
    url = listener.url.origin;
    dir = await mkdtemp(join(tmpdir(), "mailwright-inbound-"));
    page = (await room.request("/docs/inbound")).body;
  });

  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  /** What stands in a section of the page, as a reader copies it. */
  const program = (id: string): string => {
    const section = page.slice(page.indexOf(`<section id="${id}">`));
    const [, code = ""] = /<pre>([^]*?)<\/pre>/.exec(section) ?? [];
    return code
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&quot;", '"')
      .replaceAll("&#x27;", "'")
      .replaceAll("&#39;", "'")
      .replaceAll("&amp;", "&");
  };

  const pipe = async (to: string, mail: Buffer, env: Record<string, string> = {}) => {
    const file = join(dir, "inbound-pipe.sh");
    await writeFile(file, program("postfix"));
    const run = Bun.spawn(["sh", file, "ada@example.com", CLIENT, "mx.example.com", to], {
      stdin: mail,
      stdout: "pipe",
      env: { PATH: process.env["PATH"], INBOUND_URL: url, INBOUND_SECRET: SECRET, ...env },
    });
    const output = await new Response(run.stdout).text();
    return { exit: await run.exited, output };
  };

  test("the pipe of Postfix hands a mail in, and tells its sender what was refused", async () => {
    const mail = await signedBy("example.com", fromOwner("By pipe"));
    expect(await pipe(room.inbox.address.replace("@", "+a&b='%@"), mail)).toEqual({ exit: 0, output: "" });
    expect(await room.newest()).toMatchObject({ subject: "By pipe", authority: "owner" });
    const refused = await pipe("nobody@mw.test", mail);
    expect(refused).toEqual({ exit: 69, output: "5.1.1 There is no such address here" });
  });

  test("a mail with the line ends of Unix, as Postfix pipes it, keeps its signature", async () => {
    const mail = await signedBy("example.com", fromOwner("By lines"));
    const unix = Buffer.from(mail.toString("latin1").replaceAll("\r\n", "\n"), "latin1");
    expect(await pipe(room.inbox.address, unix)).toEqual({ exit: 0, output: "" });
    expect(await room.newest()).toMatchObject({ subject: "By lines", authority: "owner" });
  });

  test("the pipe of Postfix returns a mail that is larger than the server takes", async () => {
    const { exit, output } = await pipe(room.inbox.address, Buffer.alloc(200_000, "x"));
    expect([exit, output]).toEqual([69, "5.3.4 The mail is larger than this server takes\n"]);
  });

  test("a bounce keeps its empty sender on its way through Postfix", () => {
    // Postfix's own word for it would be MAILER-DAEMON.
    expect(page).toMatch(/ user=nobody null_sender= argv=\S/);
  });

  test("the pipe of Postfix keeps the mail while it is not taken", async () => {
    const mail = fromOwner();
    expect((await pipe(room.inbox.address, mail, { INBOUND_SECRET: "x".repeat(32) })).exit).toBe(75);
    expect((await pipe(room.inbox.address, mail, { INBOUND_URL: "http://127.0.0.1:1" })).exit).toBe(75);
  });

  test("the mail worker hands a mail in, and refuses what was refused", async () => {
    const file = join(dir, "worker.mjs");
    await writeFile(file, program("worker"));
    const { default: worker } = await import(file);
    const env = { INBOUND_URL: url, INBOUND_SECRET: SECRET };
    const rejected: string[] = [];
    const mail = await signedBy("example.com", fromOwner("By worker"));
    const message = (to: string) => ({
      from: "ada@example.com",
      to,
      raw: new Blob([mail]).stream(),
      setReject: (text: string) => void rejected.push(text),
    });
    await worker.email(message(room.inbox.address), env);
    expect(await room.newest()).toMatchObject({ subject: "By worker", authority: "owner" });
    await worker.email(message("nobody@mw.test"), env);
    expect(rejected).toEqual(["There is no such address here"]);
    const raw = new Blob([Buffer.alloc(200_000, "x")]).stream();
    await worker.email({ ...message(room.inbox.address), raw }, env);
    expect(rejected.at(-1)).toBe("The mail is larger than this server takes");
    const wrong = worker.email(message(room.inbox.address), { ...env, INBOUND_SECRET: "x".repeat(32) });
    expect(wrong).rejects.toThrow("not taken yet: 400");
  });

  test("no program returns a mail that is only put off, although the request was answered", async () => {
    const { inbox, message } = { inbox: room.inbox.address, message: "please try again later" };
    const answer = [{ recipient: inbox, status: "refused", code: 451, enhanced: "4.7.1", text: message }];
    using busy = Bun.serve({ port: 0, fetch: () => Response.json({ recipients: answer }) });
    const INBOUND_URL = busy.url.origin;
    expect(await pipe(inbox, fromOwner(), { INBOUND_URL })).toEqual({ exit: 75, output: "" });
    const file = join(dir, "patient-worker.mjs");
    await writeFile(file, program("worker"));
    const { default: worker } = await import(file);
    const rejected: string[] = [];
    const mail = {
      from: "ada@example.com",
      to: inbox,
      raw: new Blob([fromOwner()]).stream(),
      setReject: (text: string) => void rejected.push(text),
    };
    await expect(worker.email(mail, { INBOUND_URL, INBOUND_SECRET: SECRET })).rejects.toThrow("put off: 451");
    expect(rejected).toEqual([]);
  });

  test("the example of the page is right", () => {
    const [, envelope = "", text = "", v1 = ""] =
      /envelope <code>([^<]*)<\/code> and the mail <code>([^<]*)<\/code> the signature is <code>(\w+)<\/code>/.exec(
        page.replaceAll("&amp;", "&"),
      ) ?? [];
    const example = { mail: Buffer.from(text), envelope, time: 1_700_000_000, secret: "inbound_test" };
    expect(signatureOf(example)).toBe(`t=1700000000,v1=${v1}`);
  });
});
