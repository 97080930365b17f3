import { describe, expect, test } from "bun:test";
import { openMetricsDoor } from "../src/http/metrics.ts";
import { createMetrics } from "../src/metrics.ts";
import { house } from "./faults/house.ts";
import { rawClient, upToData } from "./interop/raw-client.ts";
import { testApp } from "./support/app.ts";
import { mailroom, type Mailroom, type RoomOptions } from "./support/mailroom.ts";
import { startSmtpSink } from "./support/smtp-sink.ts";
import { startReceiver, TO_LOOPBACK } from "./support/webhook-receiver.ts";

const TOKEN = "figures-for-the-operator";
const WITH_TOKEN = { authorization: `Bearer ${TOKEN}` };

/** A mailroom that is measured. */
async function measured(options: RoomOptions = {}): Promise<Mailroom> {
  const config = { ...options.config, metrics: { token: TOKEN } };
  return mailroom({ ...options, config, parts: { metrics: await createMetrics() } });
}

async function figures(room: Mailroom): Promise<Figures> {
  const { status, headers, body } = await room.request("/metrics", { headers: WITH_TOKEN });
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return readFigures(body);
}

describe("what happens is counted:", () => {
  test("a mail, its run, its answer, the tokens and the credit", async () => {
    await using sink = await startSmtpSink();
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await measured({ config: { outbound: { mode: "relay", relay_url } } });
    await room.send({ text: "Hello" });
    const waiting = await figures(room);
    expect(waiting.value("mailwright_queue_jobs", { kind: "route_message", status: "pending" })).toBe(1);
    room.clock.advance("5m");
    const later = await figures(room);
    expect(later.value("mailwright_queue_oldest_seconds", { kind: "route_message" })).toBe(300);
    await room.drain();
    const after = await figures(room);
    const count = (name: string, labels = {}) => after.value(`${name}_count`, labels);
    expect(count("mailwright_accept_seconds", { outcome: "accepted" })).toBe(1);
    expect(count("mailwright_route_seconds", { source: "email", state: "done" })).toBe(1);
    expect(after.value("mailwright_route_seconds_sum", { source: "email", state: "done" })).toBe(300);
    expect(count("mailwright_send_seconds", { outcome: "sent" })).toBe(1);
    expect(after.value("mailwright_reply_seconds_sum")).toBe(300);
    expect(after.value("mailwright_messages_total", { source: "email", state: "received" })).toBe(1);
    expect(after.value("mailwright_messages_total", { source: "email", state: "done" })).toBe(1);
    expect(after.value("mailwright_model_tokens_total", { direction: "input" })).toBeGreaterThan(0);
    expect(after.value("mailwright_model_tokens_total", { direction: "output" })).toBeGreaterThan(0);
    expect(after.value("mailwright_credits_charged_total")).toBe(1);
    expect(after.find("mailwright_queue_jobs", { kind: "route_message" })).toEqual([]);
  });

  test("a call, a refused call, and a webhook", async () => {
    await using receiver = startReceiver();
    await using room = await measured({ config: { webhooks: TO_LOOPBACK } });
    await room.owner.post("/v1/webhooks", { url: receiver.url, event_types: ["*"] });
    await room.owner.post("/v1/messages", { instruction: "Do it" });
    await room.drain();
    await room.owner.post("/v1/messages", {});
    await room.request("/inboxes");
    const found = await figures(room);
    expect(found.value("mailwright_messages_total", { source: "api", state: "done" })).toBe(1);
    expect(found.value("mailwright_webhook_seconds_count", { outcome: "delivered" })).toBe(1);
    expect(found.value("mailwright_http_refusals_total", { code: "validation_error" })).toBe(1);
    expect(found.value("mailwright_http_refusals_total", { code: "unauthorized" })).toBe(1);
  });

  test("refused mails, by reason", async () => {
    await using room = await measured({ inbox: { allowlist_senders: ["bob@example.org"] } });
    await room.send({ from: "Eve <eve@example.net>" });
    await room.send({ rcpt: "nobody@mw.test" }).catch(() => undefined);
    await room.send({ headers: { From: "Two <two@example.com>" } });
    const found = await figures(room);
    expect(found.find("mailwright_mails_refused_total")).toHaveLength(3);
    for (const reason of ["not_allowlisted", "bad_from", "unknown_recipient"])
      expect(found.value("mailwright_mails_refused_total", { reason })).toBe(1);
    expect(found.value("mailwright_accept_seconds_count", { outcome: "refused" })).toBe(2);
    expect((await room.owner.get("/admin/overview")).body.refusals).toHaveLength(3);
  });

  test("a mail that had to go because too much came in at once", async () => {
    await using room = await measured({ config: { smtp: { max_message_bytes: 20_000 } } });
    using open = new DisposableStack();
    const half = async () => {
      const client = open.use(await rawClient(room.door));
      await upToData(client, "eve@example.net", [room.inbox.address]);
      const lines = Array.from({ length: 39 }, () => Buffer.from("A line of text.\r\n".repeat(29)));
      await client.writePieces([Buffer.from("From: eve@example.net\r\n\r\n"), ...lines]);
      return client;
    };
    const clients = await Promise.all(Array.from({ length: 9 }, half));
    for (const client of clients) client.write(".\r\n");
    const replies = await Promise.all(clients.map((client) => client.reply()));
    expect(replies.filter((reply) => reply.startsWith("452 4.3.1 Too many large mails"))).toHaveLength(1);
    const found = await figures(room);
    expect(found.value("mailwright_mails_refused_total", { reason: "crowded" })).toBe(1);
  });

  test("what is held, the disk, the loop and the version", async () => {
    await using room = await measured();
    await room.owner.post("/admin/queue/hold", { kind: "send_mail" });
    let found = await figures(room);
    while (found.value("mailwright_event_loop_delay_seconds_count") === 0) found = await figures(room);
    expect(found.find("mailwright_queue_held")).toMatchObject([{ labels: { kind: "send_mail" }, value: 1 }]);
    expect(found.value("mailwright_disk_free_bytes")).toBeGreaterThan(0);
    expect(found.value("process_resident_memory_bytes")).toBeGreaterThan(1e6);
    expect(found.find("mailwright_info")).toHaveLength(1);
  });
});

test("no label can be made to hold what others wrote", async () => {
  const metrics = await createMetrics();
  metrics.count("mailwright_mails_refused_total", { reason: 'eve@example.net" 1\n' });
  metrics.time("mailwright_http_request_seconds", { method: "BREW", status: "2xx" }, 1);
  const { text } = await metrics.render([]);
  const found = readFigures(text);
  expect(found.value("mailwright_mails_refused_total", { reason: "other" })).toBe(1);
  expect(found.value("mailwright_http_request_seconds_count", { method: "other", status: "2xx" })).toBe(1);
  expect(text).not.toMatch(/example|BREW/);
  metrics[Symbol.dispose]();
});

describe("the figures", () => {
  test("are not on the usual listener without a token, and with one only for who knows it", async () => {
    await using bare = await testApp();
    expect((await bare.request("/metrics")).status).toBe(404);
    await using room = await measured();
    for (const authorization of [
      "",
      "Bearer",
      "Bearer ",
      `Bearer ${TOKEN}x`,
      `Basic ${TOKEN}`,
      room.owner.key,
    ]) {
      const { status, body } = await room.request("/metrics", { headers: { authorization } });
      expect([authorization, status, body.code]).toEqual([authorization, 401, "unauthorized"]);
    }
    const ada = await room.owner.get("/metrics");
    expect(ada.status).toBe(401);
  });

  test("have a listener of their own, which shows nothing else and asks for the token where there is one", async () => {
    for (const token of ["", TOKEN]) {
      const metrics = await createMetrics();
      await using t = await testApp({ metrics: { listen: "127.0.0.1:0", token } }, { metrics });
      await using door = openMetricsDoor(t.app);
      const url = door.url ?? "";
      expect((await fetch(url)).status).toBe(token === "" ? 200 : 401);
      const known = await fetch(url, { headers: WITH_TOKEN });
      expect(readFigures(await known.text()).find("mailwright_info")).toHaveLength(1);
      expect((await fetch(new URL("/inboxes", url), { headers: WITH_TOKEN })).status).toBe(404);
    }
  });

  test("are served by the program, beside everything else", async () => {
    await using at = await house({ metrics: { listen: "127.0.0.1:0" } });
    await using server = await at.start();
    const [, url = ""] = /"metrics":"([^"]+)"/.exec(server.log()) ?? [];
    await fetch(`${server.http}/livez`);
    const found = readFigures(await (await fetch(url)).text());
    const labels = { method: "GET", status: "2xx" };
    expect(found.value("mailwright_http_request_seconds_count", labels)).toBeGreaterThan(0);
    expect(found.value("mailwright_uptime_seconds")).toBeGreaterThan(0);
    expect((await fetch(`${server.http}/metrics`)).status).toBe(404);
  });
});

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

interface Figures {
  find(name: string, labels?: Record<string, string>): Sample[];
  /** The value of the only sample that has these labels. */
  value(name: string, labels?: Record<string, string>): number;
}

/** Reads the text format strictly: https://prometheus.io/docs/instrumenting/exposition_formats/ */
function readFigures(text: string): Figures {
  const types = new Map<string, string>();
  const helped = new Set<string>();
  const samples: Sample[] = [];
  if (!text.endsWith("\n")) throw new Error("The last line does not end");
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, what, name = "", rest = ""] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.*)$/.exec(line) ?? [];
    if (what === "HELP") {
      if (helped.has(name) || rest === "") throw new Error(`A second or an empty HELP: ${line}`);
      helped.add(name);
    } else if (what === "TYPE") {
      if (types.has(name) || !/^(counter|gauge|histogram)$/.test(rest)) throw new Error(`Bad TYPE: ${line}`);
      types.set(name, rest);
    } else samples.push(readSample(line, types));
  }
  checkHistograms(samples, types);
  const find: Figures["find"] = (name, labels = {}) =>
    samples.filter(
      (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
    );
  return {
    find,
    value(name, labels = {}) {
      const found = find(name, labels);
      if (found.length !== 1) throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`);
      return found[0]?.value ?? Number.NaN;
    },
  };
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)$/;

function readSample(line: string, types: Map<string, string>): Sample {
  const found = SAMPLE.exec(line);
  if (!found) throw new Error(`Not a sample: ${line}`);
  const [, name = "", inner = "", value = ""] = found;
  const type = typeOf(name, types);
  if (type === undefined) throw new Error(`No TYPE comes before ${line}`);
  if ((type === "counter") !== name.endsWith("_total")) throw new Error(`_total is for counters: ${line}`);
  const labels: Record<string, string> = {};
  for (const [, key = "", text = ""] of inner.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g))
    labels[key] = text;
  return { name, labels, value: numberOf(value) };
}

function typeOf(name: string, types: Map<string, string>): string | undefined {
  const family = types.get(name.replace(/_(bucket|sum|count)$/, ""));
  return types.get(name) ?? (family === "histogram" ? family : undefined);
}

function numberOf(text: string): number {
  const value = text === "+Inf" ? Infinity : Number(text);
  if (Number.isNaN(value)) throw new Error(`${text} is no number`);
  return value;
}

/** Buckets only grow, and the last one counts all. */
function checkHistograms(samples: Sample[], types: Map<string, string>): void {
  for (const [family] of [...types].filter(([, type]) => type === "histogram")) {
    const series = Map.groupBy(
      samples.filter(({ name }) => name === `${family}_bucket`),
      ({ labels }) => JSON.stringify({ ...labels, le: undefined }),
    );
    for (const [labels, buckets] of series) {
      const counts = buckets.map(({ value }) => value);
      const total = samples.find(
        (one) => one.name === `${family}_count` && JSON.stringify(one.labels) === labels,
      );
      if (buckets.at(-1)?.labels["le"] !== "+Inf" || counts.at(-1) !== total?.value)
        throw new Error(`${family}${labels} has no last bucket with all`);
      if (counts.some((count, at) => count < (counts[at - 1] ?? 0))) throw new Error(`${family} shrinks`);
    }
  }
}
