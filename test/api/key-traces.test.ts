import { afterAll, expect, test } from "bun:test";
import { createApiKey } from "../../src/resources/accounts/api-keys.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { hashSecret } from "../../src/lib/secrets.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { ALONE, listed } from "../support/kill-points.ts";
import { type CommitWatch, watchCommits } from "../support/lone-commits.ts";
import { mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { startAlteredServer } from "../support/oauth-altered-server.ts";
import { startStripe } from "../support/stripe-stand-in.ts";
import { TRACES } from "./access.ts";
import { freshCode, openBrowser } from "./browser.ts";
import { LOOPBACK, NO_DNS, OWNED, type Owner, ownerOfEverything, sendAs } from "./every-route.ts";

const ADA = "ada@example.com";
const CLIENT = "198.51.100.6";

/** Asks for authorisation, and has an authorization server. */
const mcpServer = startAlteredServer();
afterAll(() => mcpServer[Symbol.asyncDispose]());

/** The commits that were seen alone in a request; all of them, once each test here has been run. */
const lone = new Set<string>();
let ran = 0;
afterAll(() => {
  if (ran === Object.keys(TRACES).length + 3)
    expect(listed("commit", ALONE).filter((name) => !lone.has(name))).toEqual([]);
});

async function expectLone(watch: CommitWatch, about: string, ask: () => Promise<unknown>): Promise<void> {
  watch.begin();
  await ask();
  const { alone, beside } = watch.end();
  if (alone.length > 0) expect([about, [...alone.slice(1), ...beside]]).toEqual([about, []]);
  for (const name of alone) lone.add(name);
}

/** The paths whose parts are no ids of what an account has. */
const OTHERS: Record<string, (t: TestApp, owner: Owner) => string | Promise<string>> = {
  "POST /recipes/:recipe_id/apply": () => "/recipes/email-summarizer/apply",
  "POST /integrations/:provider/connect": () => "/integrations/notes/connect",
  "POST /messages/:message_id/cancel": async (_t, { caller }) => {
    const { body } = await caller.post("/v1/messages", { instruction: "Wait", async: true });
    return `/messages/${body.message_id}/cancel`;
  },
  "PATCH /admin/users/:user_id": (_t, { caller }) => `/admin/users/${caller.user.id}`,
  "POST /admin/users/:user_id/send-code": (_t, { caller }) => `/admin/users/${caller.user.id}/send-code`,
  "POST /connections/:connection_id/pull": async (_t, { caller }) =>
    `/connections/${(await caller.post("/connections", { kind: "ollama" })).body.id}/pull`,
  "POST /admin/queue/:job_id/retry": async (t, owner) => `/admin/queue/${await waitingJob(t, owner)}/retry`,
  "POST /admin/queue/:job_id/drop": async (t, owner) => `/admin/queue/${await waitingJob(t, owner)}/drop`,
};

test.each(Object.entries(TRACES))("%s by a key leaves its trace", async (name, trace) => {
  await using stripe = startStripe(() => 0);
  await using sink = await startSmtpSink();
  await using t = await testApp({
    llm: { kind: "demo" },
    dns: NO_DNS,
    webhooks: LOOPBACK,
    plans: { default: "pro" },
    integrations: { notes: { client_id: "x", client_secret: "y" } },
    server: { trusted_proxies: ["127.0.0.1"] },
    outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
    ...stripe.config,
  });
  const owner = await ownerOfEverything(t, "ada", mcpServer.url);
  // The page of the invoices is for who has begun to pay.
  if (name === "POST /billing/portal") await owner.caller.post("/billing/checkout", { plan: "team" });
  const laptop = await createApiKey(t.app, { email: ADA, name: "laptop" });
  const [method = "", path = ""] = name.split(" ");
  await t.drain();
  const known = sink.mails.length;
  const credential = { "x-api-key": laptop.key, "x-forwarded-for": CLIENT };
  const own = (await OTHERS[name]?.(t, owner)) ?? OWNED[name]?.(owner) ?? path;
  await expectLone(await watchCommits(t.app), name, async () => {
    const answer = await sendAs(t, credential, { method, path, name }, own);
    expect([name, answer.status < 300]).toEqual([name, true]);
  });
  ran += 1;
  const events = t.app.db.selectFrom("security_events").select(["kind", "client", "api_key", "times"]);
  const api_key = `laptop (${laptop.prefix}…${laptop.last4})`;
  expect(await events.where("api_key", "=", api_key).execute()).toEqual(
    trace.event === null ? [] : [{ kind: trace.event, client: CLIENT, api_key, times: 1 }],
  );
  await t.drain();
  const mailed = sink.mails
    .slice(known)
    .map(({ raw }) => /^Subject: (.*)$/m.exec(raw.toString())?.[1]?.trim());
  expect(mailed).toEqual(trace.letter === null ? [] : [trace.letter]);
});

test("whoever signs up, in, and out, or writes to the operator, changes what lasts in one commit a request", async () => {
  await using t = await testApp();
  t.app.setup.hash = hashSecret("the-link");
  const watch = await watchCommits(t.app);
  const [first, second] = [openBrowser(t), openBrowser(t)];
  const bob = { email: "bob@example.com", password: "quiet river 42" };
  const post = async (browser: typeof first, path: string, body: object): Promise<void> =>
    expectLone(watch, path, async () => {
      const { status } = await browser.post(path, body);
      expect([path, status < 300]).toEqual([path, true]);
    });
  await post(first, "/setup", { token: "the-link", email: ADA });
  await post(second, "/auth/register", bob);
  const code = await freshCode(t, bob.email);
  await post(second, "/auth/verify", { ...bob, code });
  await post(second, "/auth/set-password", { password: "loud mountain 7", current_password: bob.password });
  await post(second, "/auth/logout", {});
  await post(second, "/auth/login", { ...bob, password: "loud mountain 7" });
  await post(second, "/contacts", { name: "Bob", email: bob.email, message: "Hello, may I ask something?" });
  ran += 1;
});

test("what was given up and is tried again ends with the commit that begins it anew", async () => {
  await using t = await testApp({
    llm: { kind: "demo" },
    dns: NO_DNS,
    webhooks: LOOPBACK,
    plans: { default: "pro" },
  });
  const owner = await ownerOfEverything(t, "ada", mcpServer.url);
  const watch = await watchCommits(t.app);
  await owner.caller.post(`/inboxes/${owner.inbox_id}/email-vcard`);
  const { id: outgoing_id } = await t.app.db
    .selectFrom("outgoing_mails")
    .select("id")
    .executeTakeFirstOrThrow();
  const left = [
    { kind: "route_message", payload: { message_id: owner.failed_mail_id } },
    { kind: "send_mail", payload: { outgoing_id } },
    { kind: "mail_returns", payload: { user_id: owner.caller.user.id } },
  ] as const;
  await t.app.db.updateTable("outgoing_mails").set({ status: "bounced" }).execute();
  for (const one of left) {
    const job = await t.app.write(async (tx) => {
      await tx.deleteFrom("jobs").where("kind", "=", one.kind).execute();
      return enqueue(t.app, tx, { ...one, run_at: t.app.after(86_400) });
    });
    await t.app.write((tx) =>
      tx
        .updateTable("jobs")
        .set({ status: "dead" })
        .where("id", "=", job?.id ?? "")
        .execute(),
    );
    await expectLone(watch, one.kind, async () => {
      const { status } = await owner.caller.post(`/admin/queue/${job?.id}/retry`);
      expect([one.kind, status]).toEqual([one.kind, 204]);
    });
  }
  ran += 1;
});

test("an answer that came back is mailed again with one commit", async () => {
  await using sink = await startSmtpSink({ reject: () => "550 5.1.1 no such user" });
  const outbound = { mode: "relay" as const, relay_url: `smtp://127.0.0.1:${sink.port}` };
  await using t = await mailroom({ config: { outbound } });
  await t.send({ text: "What is new?" });
  await t.drain();
  const [message] = await t.activity();
  expect(message).toMatchObject({ reply_status: "bounced" });
  await expectLone(await watchCommits(t.app), "retry", async () => {
    expect((await t.owner.post(`/messages/${message.message_id}/retry`)).status).toBe(202);
  });
  ran += 1;
});

async function waitingJob(t: TestApp, { caller }: Owner): Promise<string> {
  const { id: user_id } = caller.user;
  const run_at = t.app.after(86_400);
  const job = await t.app.write((tx) =>
    enqueue(t.app, tx, { kind: "mail_returns", payload: { user_id }, run_at }),
  );
  return job?.id ?? "";
}
