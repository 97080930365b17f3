import { expect, test } from "bun:test";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { until } from "../support/until.ts";

const CAPTURE = { MAILWRIGHT_OUTBOUND__MODE: "capture" };

async function mail(server: ServerProcess, to: string, subject: string): Promise<void> {
  const from = "ada@example.com";
  const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
  expect(await deliver(server.smtp, { from, to, raw: rawMail({ from, to, subject, headers }) })).toMatch(
    /^250/,
  );
}

/** By a command line about the queue that has the configuration of such a server. */
async function said(at: House, ...words: string[]): Promise<string> {
  return new Response(at.spawn(CAPTURE, "queue", ...words).stdout).text();
}

test("what waits for delivery goes on waiting while outgoing mail is captured, is shown as held, and goes out after it", async () => {
  await using sink = await startSmtpSink();
  await using at = await house({ outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } });
  const ada = await account(at, "ada@example.com");
  const get = async (server: ServerProcess, path: string) => {
    const response = await fetch(server.http + path, { headers: { "x-api-key": ada.api_key } });
    // oxlint-disable-next-line typescript/no-explicit-any
    return response.json() as Promise<any>;
  };
  const activity = async (server: ServerProcess) => {
    const { items } = await get(server, "/messages");
    return items as { message_id: string; subject: string; reply_status: string }[];
  };
  sink.fault = "refuse";
  let to = "";
  {
    await using server = await at.start();
    to = await inbox(server, ada);
    await mail(server, to, "before");
    await until(() => server.log().includes("mail not handed over"));
  }
  sink.fault = undefined;
  {
    await using server = await at.start(CAPTURE);
    await mail(server, to, "meanwhile");
    await until(async () => (await activity(server)).some(({ reply_status }) => reply_status === "sent"));
    expect(await said(at, "retry", "--all")).toBe(
      '1 job is held: outbound.mode is "capture"; what was queued for delivery waits for "relay" or "direct".\n',
    );
    expect(await said(at, "list", "--state", "held")).toContain("send_mail  held");
    expect((await get(server, "/admin/queue?kind=send_mail")).items).toMatchObject([
      { state: "held", why: expect.stringContaining('outbound.mode is "capture"'), next_at: null },
    ]);
    const unsent =
      '1 mail that was queued for delivery waits: outbound.mode is "capture". It goes out once that is "relay" or "direct" again.';
    expect(await get(server, "/readyz")).toMatchObject({ status: "ok", warnings: { unsent } });
    expect(server.log()).toContain(JSON.stringify(unsent).slice(1, -1));
    const [, before] = await activity(server);
    expect(before).toMatchObject({ subject: "before", reply_status: "deferred" });
    const { reply } = await get(server, `/messages/${before?.message_id}`);
    expect(reply).toMatchObject({ status: "deferred", held: true, kept_here: false });
  }
  expect(sink.mails).toHaveLength(0);
  await using server = await at.start();
  await until(() => server.log().includes("mail handed over"));
  expect(sink.mails).toHaveLength(1);
  const [meanwhile, before] = await activity(server);
  expect([meanwhile?.reply_status, before?.reply_status]).toEqual(["sent", "sent"]);
  expect((await get(server, `/messages/${meanwhile?.message_id}`)).reply).toMatchObject({
    kept_here: true,
    held: false,
  });
  expect((await get(server, `/messages/${before?.message_id}`)).reply).toMatchObject({
    kept_here: false,
    held: false,
  });
  expect((await get(server, "/readyz")).warnings).toEqual({});
}, 60_000);
