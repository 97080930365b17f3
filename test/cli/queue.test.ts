import { expect, test } from "bun:test";
import { account, type House, house, inbox, type ServerProcess } from "../faults/house.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { until } from "../support/until.ts";

interface Job {
  id: string;
  kind: string;
  state: string;
  about: string;
  why: string;
}

async function list(at: House, ...words: string[]): Promise<{ jobs: Job[]; held: string[]; more: boolean }> {
  const { code, out, err } = await at.cli("queue", "list", "--json", ...words);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

async function mail(server: ServerProcess, to: string): Promise<void> {
  const from = "ada@example.com";
  const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
  const raw = rawMail({ from, to, headers });
  expect(await deliver(server.smtp, { from, to, raw })).toMatch(/^250/);
}

/** Until a line of the log says so: what the server does next is its own affair. */
async function logged(server: ServerProcess, words: string): Promise<void> {
  await until(() => server.log().includes(words));
}

test("beside a running server the queue is listed, held, released and tried again, and what is held outlives a restart", async () => {
  await using sink = await startSmtpSink();
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` };
  await using at = await house({ outbound });
  const ada = await account(at, "ada@example.com");
  {
    await using server = await at.start();
    const to = await inbox(server, ada);
    const held = await at.cli("queue", "hold");
    expect(held.out).toContain(
      "Held: route_message, send_mail, replay_message, fan_out_event, deliver_webhooks, run_schedule.",
    );
    await mail(server, to);
    const { jobs } = await list(at, "--kind", "route_message");
    expect(jobs).toMatchObject([{ state: "held", about: `work on a mail from ada@example.com for ${to}` }]);
    const ready = await fetch(`${server.http}/readyz`);
    expect(await ready.json()).toMatchObject({
      status: "ok",
      warnings: {
        held: "held by the operator: deliver_webhooks, fan_out_event, replay_message, route_message, run_schedule, send_mail",
      },
    });
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  }
  await using server = await at.start();
  const shown = await at.cli("queue", "list");
  expect(shown.out).toMatch(
    /route_message {2}held\n {2}work on a mail .* \(account ada@example\.com\), since /,
  );
  expect(shown.out).toContain("`mailwright queue release` lets them go on.");
  sink.fault = "refuse";
  expect((await at.cli("queue", "release")).out).toBe("Released 6 kinds, 1 job starts.\n");
  expect((await at.cli("queue", "release")).out).toBe("Nothing of it was held.\n");
  await logged(server, "mail not handed over");
  const [job] = (await list(at, "--state", "waiting", "--kind", "send_mail")).jobs;
  expect(job).toMatchObject({ about: expect.stringContaining("to ada@example.com"), failures: 1 });
  await at.cli("queue", "hold", "send_mail");
  const retried = await at.cli("queue", "retry", job?.id ?? "");
  expect([retried.code, retried.err, retried.out]).toEqual([
    0,
    "",
    "1 job is held: `mailwright queue release send_mail` lets it be tried.\n",
  ]);
  sink.fault = undefined;
  await at.cli("queue", "release");
  // Its own time would have come after a minute.
  await logged(server, "mail handed over");
  expect(sink.mails).toHaveLength(1);
}, 60_000);

test("beside a running server a call that was given up is tried again with its large file", async () => {
  await using at = await house({});
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  await inbox(server, ada);
  await at.cli("queue", "hold", "route_message");
  const file = {
    filename: "a.txt",
    content_type: "text/plain",
    data: Buffer.alloc(20_000, "a").toString("base64"),
  };
  const asked = await fetch(`${server.http}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": ada.api_key, "content-type": "application/json" },
    body: JSON.stringify({ instruction: "Sum this up.", async: true, attachments: [file] }),
  });
  expect(asked.status).toBe(202);
  const database = at.database();
  database.exec("update jobs set status = 'dead' where kind = 'route_message'");
  database.exec("update messages set state = 'failed', reason = 'internal_error', error = 'It broke.'");
  database.close();
  const { code, err, out } = await at.cli("queue", "retry", "--all");
  expect([code, err, out]).toEqual([
    0,
    "",
    "1 job is held: `mailwright queue release route_message` lets it be tried.\n",
  ]);
  const page = await fetch(`${server.http}/messages`, { headers: { "x-api-key": ada.api_key } });
  const { items } = (await page.json()) as { items: { attachments: { url: string }[] }[] };
  const url = items[0]?.attachments[0]?.url ?? "";
  const read = await fetch(`${server.http}${url}`, { headers: { "x-api-key": ada.api_key } });
  expect(await read.text()).toBe("a".repeat(20_000));
}, 60_000);

test("a message whose account has no credits left is not tried again, and its job is kept", async () => {
  await using at = await house({ plans: { team: { credits: 1 } } });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  await inbox(server, ada);
  await at.cli("queue", "hold", "route_message");
  const asked = await fetch(`${server.http}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": ada.api_key, "content-type": "application/json" },
    body: JSON.stringify({ instruction: "Sum this up.", async: true }),
  });
  expect(asked.status).toBe(202);
  const database = at.database();
  database.exec("update jobs set status = 'dead' where kind = 'route_message'");
  database.exec("update messages set state = 'failed', reason = 'internal_error', error = 'It broke.'");
  database.close();
  const { err, out } = await at.cli("queue", "retry", "--all");
  expect(`${out}${err}`).toContain("The account has no credits left");
  expect((await list(at, "--state", "dead")).jobs).toHaveLength(1);
}, 60_000);

test("without a server what was left in the middle can be dropped, and what waits on account of a failure tried again", async () => {
  await using at = await house({
    outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:9" },
  });
  const ada = await account(at, "ada@example.com");
  {
    await using server = await at.start();
    await mail(server, await inbox(server, ada));
    await logged(server, "mail not handed over");
    server.kill("SIGKILL");
    await server.exited;
  }
  {
    const database = at.database();
    database.exec("update jobs set status = 'running', attempts = 1 where kind = 'send_mail'");
    database.close();
  }
  const [job] = (await list(at, "--kind", "send_mail")).jobs;
  expect(job?.state).toBe("waiting");
  expect((await at.cli("queue", "retry", "--all")).out).toBe("1 job is tried once a server runs.\n");
  expect((await list(at, "--kind", "send_mail")).jobs).toMatchObject([{ state: "due" }]);
  const id = job?.id ?? "";
  const dropped = await at.cli("queue", "drop", id, "--reason", "wrong list");
  expect([dropped.code, dropped.out]).toEqual([0, "The job (send_mail) is out of the queue.\n"]);
  await at.cli("queue", "hold", "route_message");
  {
    await using server = await at.start();
    const to = await inbox(server, ada);
    for (let count = 0; count < 2; count += 1) await mail(server, to);
    server.kill("SIGTERM");
    await server.exited;
  }
  const [one, other] = (await list(at, "--kind", "route_message")).jobs;
  const shown = await at.cli("queue", "drop", one?.id ?? "");
  expect(shown.out).toMatch(
    /^The job \(route_message\) is out of the queue\.\nMessage [0-9a-f-]{36} has failed \(dropped\); nothing is charged for it\.\n$/,
  );
  const told = await at.cli("queue", "drop", other?.id ?? "", "--json");
  expect(JSON.parse(told.out)).toEqual({
    id: other?.id,
    kind: "route_message",
    messages: [{ id: expect.any(String), state: "failed", reason: "dropped" }],
  });
  const gone = await at.cli("queue", "drop", id);
  expect([gone.code, gone.err]).toEqual([1, expect.stringContaining("There is no such job in the queue.")]);
  for (const words of [["retry"], ["retry", id, "--all"], ["list", "--limit", "0"], ["hold", "odd"]])
    expect([words, (await at.cli("queue", ...words)).code]).toEqual([words, 1]);
}, 60_000);

test("what waits for a webhook is sent at once, by its id and with all of them", async () => {
  await using hooks = startReceiver(() => new Response("no", { status: 500 }));
  await using at = await house({ webhooks: { ...TO_LOOPBACK, backoff: [0, 3_600, 3_600] } });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  await inbox(server, ada);
  const call = (path: string, body: object) =>
    fetch(`${server.http}${path}`, {
      method: "POST",
      headers: { "x-api-key": ada.api_key, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  expect((await call("/v1/webhooks", { url: hooks.url, event_types: ["*"] })).status).toBe(201);
  expect((await call("/v1/messages", { instruction: "Say hello" })).status).toBe(200);
  const whyOf: string[] = [];
  const waiting = async (): Promise<string> => {
    for (;;) {
      const [job] = (await list(at, "--kind", "deliver_webhooks", "--state", "waiting")).jobs;
      if (job) {
        whyOf.push(job.why);
        return job.id;
      }
    }
  };
  await hooks.reached(1);
  const said = "1 job is tried as soon as the server has a free slot.\n";
  expect((await at.cli("queue", "retry", await waiting())).out).toBe(said);
  await hooks.reached(2);
  await waiting();
  expect((await at.cli("queue", "retry", "--all")).out).toBe(said);
  await hooks.reached(3);
  expect(hooks.received.map(({ headers }) => headers["service-delivery-attempt"])).toEqual(["1", "2", "3"]);
  expect(whyOf).toEqual([
    "the oldest delivery failed: the receiver answered 500",
    "the oldest delivery failed 2 times: the receiver answered 500",
  ]);
}, 60_000);
