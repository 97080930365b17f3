import { expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { account, house, inbox, type ServerProcess } from "../faults/house.ts";
import { type ModelFault, type ModelServerOptions, startModelServer } from "../support/model-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { rawClient, upToData } from "./raw-client.ts";
import { until } from "../support/until.ts";

const OWNER = "ann@peer.test";
const HARD_CAP_SECONDS = 6;
const ALL_ENDED_MS = 25_000;

/** What each sick provider ends in, and how often it is asked: twice where another try may help, else once. */
const CASES: [ModelFault, reason: string, requests: number, ModelServerOptions?][] = [
  ["hang", "timeout", 2],
  ["garbage", "bad_response", 2],
  ["html_200", "bad_response", 2],
  ["html_502", "provider_error", 2],
  ["no_choices", "bad_response", 2],
  ["huge", "bad_response", 1],
  ["rate_limited", "rate_limited", 2, { retry_after: "1" }],
  ["drop_before_answer", "unreachable", 2],
  ["drop_mid_body", "unreachable", 2],
  ["redirect", "bad_response", 1],
  ["unauthorized", "invalid_credentials", 1],
];

interface Item {
  subject: string;
  status: string;
  reason: string | null;
  error: string | null;
  credits_charged: number;
  reply_status: string;
}

test("each way a provider can fail ends its mail as failed with one notice, and the others go on", async () => {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink());
  const place = stack.use(
    await house({
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
      egress: { allow: ["127.0.0.0/8"] },
      // A hanging provider holds its slot: with as many slots as faults none waits for another.
      routing: {
        sync_budget_seconds: HARD_CAP_SECONDS,
        hard_cap_seconds: HARD_CAP_SECONDS,
        retry: [2],
        concurrency: CASES.length + 1,
      },
    }),
  );
  const owner = await account(place, OWNER);
  const server = stack.use(await place.start());
  const api = caller(server, owner.api_key);
  const healthy = await inbox(server, owner);
  const models = CASES.map(([fault, , , options]) => stack.use(startModelServer({ ...options, fault })));
  for (const [index, [fault]] of CASES.entries()) {
    const base_url = models[index]?.base_url;
    const kind = "openai_compatible";
    const { id } = await api("/connections", {
      kind,
      label: fault,
      base_url,
      model: "m",
      credential: "sk-x",
    });
    const { address } = await api("/inboxes", { label: fault, default_connection_id: id });
    expect(await mailTo(server, address as string, fault)).toBe("250 2.6.0 Message accepted");
  }
  // A mail to a healthy inbox is answered while others hang.
  expect(await mailTo(server, healthy, "healthy")).toBe("250 2.6.0 Message accepted");
  const messages = async (): Promise<Item[]> => (await api("/messages?limit=50"))["items"] as Item[];
  const isAnswered = async (): Promise<boolean> =>
    (await messages()).some(({ subject, reply_status }) => subject === "healthy" && reply_status === "sent");
  await until(isAnswered);
  expect((await messages()).find(({ subject }) => subject === "hang")?.status).toBe("received");

  const isOver = async (): Promise<boolean> =>
    (await messages()).every(({ reply_status }) => reply_status === "sent");
  await until(isOver, ALL_ENDED_MS, async () => JSON.stringify(await messages(), null, 1));
  const ended = new Map((await messages()).map((item) => [item.subject, item]));
  expect(CASES.map(([fault]) => [fault, ended.get(fault)?.status, ended.get(fault)?.reason])).toEqual(
    CASES.map(([fault, reason]) => [fault, "failed", reason]),
  );
  expect(CASES.map(([fault], index) => [fault, models[index]?.requests.length])).toEqual(
    CASES.map(([fault, , requests]) => [fault, requests]),
  );
  expect([...ended.values()].filter(({ credits_charged }) => credits_charged > 0)).toEqual([
    expect.objectContaining({ subject: "healthy", credits_charged: 1 }),
  ]);
  const live = await fetch(`${server.http}/readyz`);
  expect(live.status).toBe(200);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  await expectOneNoticeEach(
    sink.mails.map(({ raw }) => raw),
    ended,
  );
  expect(server.log()).not.toContain("sk-x");
  using db = closing(place.database());
  const left = db.prepare(
    "select (select count(*) from jobs where kind in ('route_message', 'send_mail', 'fan_out_event')) as jobs, (select count(*) from outgoing_mails) as mails",
  );
  expect(left.get()).toEqual({ jobs: 0, mails: CASES.length + 1 });
}, 60_000);

async function expectOneNoticeEach(raws: Buffer[], ended: Map<string, Item>): Promise<void> {
  const mails = await Promise.all(raws.map((raw) => simpleParser(raw)));
  const subjects = mails.map(({ subject }) => subject ?? "");
  expect(new Set(subjects)).toEqual(new Set([...ended.keys()].map((name) => `Re: ${name}`)));
  expect(subjects).toHaveLength(ended.size);
  for (const { subject = "", text = "", headers } of mails) {
    if (subject === "Re: healthy") continue;
    const error = ended.get(subject.slice(4))?.error ?? "missing";
    expect(text.replaceAll(/\s+/g, " ")).toContain(error.replaceAll(/\s+/g, " "));
    expect(headers.get("auto-submitted")).toBe("auto-generated");
  }
}

async function mailTo(server: ServerProcess, address: string, subject: string): Promise<string> {
  using client = await rawClient(server.smtp);
  await upToData(client, OWNER, [address]);
  const id = `<${Bun.randomUUIDv7()}@peer.test>`;
  client.write(`From: ${OWNER}\r\nMessage-ID: ${id}\r\nSubject: ${subject}\r\n\r\nSummarise this.\r\n.\r\n`);
  return await client.reply();
}

function caller(server: ServerProcess, key: string) {
  return async (path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const response = await fetch(`${server.http}${path}`, { ...sent, headers });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as Record<string, unknown>;
  };
}

function closing<T extends { close(): unknown }>(owned: T): T & Disposable {
  return Object.assign(owned, { [Symbol.dispose]: () => void owned.close() });
}
