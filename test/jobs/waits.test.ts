import { describe, expect, test } from "bun:test";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { JOB_RULES } from "../../src/jobs/kinds.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { retryAfterSeconds } from "../../src/net/responses.ts";
import { freshCode, openBrowser, signIn } from "../api/browser.ts";
import { hookDesk } from "../api/hook-desk.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { comeBack } from "../support/consent.ts";
import { freePort } from "../support/free-port.ts";
import { mailroom } from "../support/mailroom.ts";
import { startOAuthProviders } from "../support/oauth-providers.ts";

/** How far into a second something begins to wait: the stored times have whole seconds. */
const BEGINNINGS = ["1ms", "400ms", "600ms", "999ms"];

/** That `count` stays as it is until `seconds` have passed, and rises within the second after. */
async function expectToWait(t: TestApp, seconds: number, count: () => number | Promise<number>) {
  await t.drain();
  const before = await count();
  t.clock.advance(`${seconds * 1_000 - 1}ms`);
  await t.drain();
  expect(await count()).toBe(before);
  t.clock.advance("1001ms");
  await t.drain();
  expect(await count()).toBe(before + 1);
}

describe.each(BEGINNINGS)(
  "what begins to wait %s after a full second is not tried too early:",
  (beginning) => {
    test("a webhook whose receiver sent Retry-After", async () => {
      await using t = await hookDesk({ webhooks: { allow: ["127.0.0.1"], backoff: [0, 1, 1] } });
      await t.hook();
      t.answer(() => new Response("", { status: 503, headers: { "retry-after": "4" } }));
      t.clock.advance(beginning);
      await t.happen();
      await expectToWait(t, 4, () => t.received.length);
    });

    test("a webhook by its own plan", async () => {
      await using t = await hookDesk({ webhooks: { allow: ["127.0.0.1"], backoff: [5, 1] } });
      await t.hook();
      t.clock.advance(beginning);
      await t.happen();
      await expectToWait(t, 5, () => t.received.length);
    });

    test("a model that sent Retry-After", async () => {
      await using room = await mailroom({ model: { fault: "rate_limited", retry_after: "4" } });
      room.clock.advance(beginning);
      await room.send({});
      await expectToWait(room, 4, () => room.model.requests.length);
    });

    test("a mail that was put off", async () => {
      const relay_url = `smtp://127.0.0.1:${await freePort()}`;
      await using room = await mailroom({
        config: { outbound: { mode: "relay", relay_url, retry: [4, 600] } },
      });
      room.clock.advance(beginning);
      await room.send({});
      const failures = async () =>
        (await room.app.db.selectFrom("jobs").select("failures").where("kind", "=", "send_mail").execute())[0]
          ?.failures ?? 0;
      await expectToWait(room, 4, failures);
    });

    test("a job that failed", async () => {
      await using t = await testApp();
      let begun = 0;
      const run = (): Promise<void> => Promise.reject(new Error(`It fails for the ${(begun += 1)}. time`));
      await using worker = createWorker(t.app, { ...jobHandlers(t.app), send_mail: { run, slots: 1 } });
      t.clock.advance(beginning);
      await t.app.write((tx) => enqueue(t.app, tx, { kind: "send_mail", payload: { outgoing_id: "none" } }));
      await expectToWait({ ...t, drain: () => worker.drain() }, 2, () => begun);
    });

    test("a job whose holder is gone", async () => {
      await using t = await testApp({ outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:1" } });
      t.clock.advance(beginning);
      const { lease_seconds } = JOB_RULES.send_mail;
      await t.app.write((tx) =>
        enqueue(t.app, tx, { kind: "send_mail", payload: { outgoing_id: "none" }, claimed: true }),
      );
      // A mail that cannot be found is set aside for the operator.
      const ended = async () =>
        (await t.app.db.selectFrom("jobs").select("id").where("status", "=", "dead").execute()).length;
      await expectToWait(t, lease_seconds, ended);
    });
  },
);

describe.each(BEGINNINGS)(
  "what lives for a time and begins %s after a full second lives as long as was said:",
  (beginning) => {
    test("a code", async () => {
      await using t = await testApp();
      t.clock.advance(beginning);
      const code = await freshCode(t, "ada@example.com");
      t.clock.advance("599999ms");
      const verified = await openBrowser(t).post("/auth/verify", { email: "ada@example.com", code });
      expect(verified.status).toBe(200);
    });

    test("a session", async () => {
      await using t = await testApp({ auth: { session_days: 1 } });
      t.clock.advance(beginning);
      const browser = await signIn(t, "ada@example.com");
      t.clock.advance("86399999ms");
      expect((await browser.get("/auth/me")).status).toBe(200);
      t.clock.advance("1001ms");
      expect((await browser.get("/auth/me")).status).toBe(401);
    });

    test("a password that waits for its code", async () => {
      await using t = await testApp();
      const chosen = { email: "ada@example.com", password: "quiet river 42" };
      const problem = async () => (await openBrowser(t).post("/auth/login", chosen)).body.code;
      t.clock.advance(beginning);
      await openBrowser(t).post("/auth/register", chosen);
      t.clock.advance("899999ms");
      expect(await problem()).toBe("email_not_verified");
      t.clock.advance("1001ms");
      expect(await problem()).toBe("invalid_credentials");
    });

    test("the state of a consent page", async () => {
      await using providers = startOAuthProviders();
      await using t = await testApp(providers.config);
      const ada = await t.as("ada@example.com");
      t.clock.advance(beginning);
      const { body } = await ada.post("/integrations/notes/connect");
      const late = await ada.post("/integrations/notes/connect");
      t.clock.advance("599999ms");
      expect((await comeBack(t, ada, await providers.agree(body.authorize_url))).status).toBe(200);
      t.clock.advance("1001ms");
      expect((await comeBack(t, ada, await providers.agree(late.body.authorize_url))).status).toBe(400);
    });

    test("a webhook's old secret beside the new one", async () => {
      await using t = await hookDesk();
      const { id } = await t.hook();
      const signatures = async () => {
        await t.ada.post(`/v1/webhooks/${id}/test`);
        return t.received.at(-1)?.headers["webhook-signature"]?.split(" ").length;
      };
      t.clock.advance(beginning);
      await t.ada.post(`/v1/webhooks/${id}/rotate-secret`);
      t.clock.advance("86399999ms");
      expect(await signatures()).toBe(2);
      t.clock.advance("1001ms");
      expect(await signatures()).toBe(1);
    });
  },
);

test("a Retry-After with a fraction is no date", () => {
  const told = (value: string) => retryAfterSeconds(new Headers({ "retry-after": value }));
  expect(["4", "3.4", "0.2", "0", "x", ""].map(told)).toEqual([4, 4, 1, 0, null, null]);
});
