import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { account, house, inbox } from "./house.ts";
import { until } from "../support/until.ts";

const CAP_SECONDS = 2;
const WEBHOOK_SECONDS = 3;
const FROZEN_MS = 5_000;
const PATIENCE_MS = 20_000;

test("answers that came in while the process was frozen count, though all limits are over", async () => {
  const asked = Promise.withResolvers<void>();
  const frozen = Promise.withResolvers<void>();
  const again = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  const answered = { model: false, hook: false };
  await using model = startModelServer({
    reply: async () => {
      asked.resolve();
      await frozen.promise;
      answered.model = true;
      return "An answer from the ice.";
    },
  });
  await using hook = startReceiver(async () => {
    told.resolve();
    await again.promise;
    answered.hook = true;
    return new Response();
  });
  await using at = await house({
    llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
    routing: { hard_cap_seconds: CAP_SECONDS, sync_budget_seconds: 1 },
    egress: { allow: ["127.0.0.1"] },
    webhooks: { allow: ["127.0.0.1"], timeout_seconds: WEBHOOK_SECONDS, backoff: [0, 3_600] },
  });
  const owner = await account(at, "ann@client.example");
  await using server = await at.start();
  await inbox(server, owner);
  const headers = { "x-api-key": owner.api_key, "content-type": "application/json" };
  const call = (path: string, init: RequestInit = {}) => fetch(`${server.http}${path}`, { headers, ...init });
  const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });
  const endpoint = await post("/v1/webhooks", { url: hook.url, event_types: ["*"] });
  const { id } = (await endpoint.json()) as { id: string };

  const { message_id } = (await (await post("/v1/messages", { instruction: "x", async: true })).json()) as {
    message_id: string;
  };
  await asked.promise;
  await freeze(server.kill, () => frozen.resolve());
  const state = async () =>
    (await (await call(`/v1/messages/${message_id}`)).json()) as { status: string; result: string };
  await until(
    async () => !["received", "processing"].includes((await state()).status),
    PATIENCE_MS,
    async () => server.log(),
  );
  expect(await state()).toMatchObject({ status: "done", result: "An answer from the ice." });
  expect(model.requests).toHaveLength(1);

  await told.promise;
  await freeze(server.kill, () => again.resolve());
  const deliveries = async () =>
    (
      (await (await call(`/v1/webhooks/${id}/deliveries`)).json()) as { status: string; attempts: number }[]
    )[0];
  await until(
    async () => (await deliveries())?.status === "delivered",
    PATIENCE_MS,
    async () => JSON.stringify([await deliveries(), hook.received.length]),
  );
  expect([answered, hook.received.length]).toEqual([{ model: true, hook: true }, 1]);
});

/** Stops the process in the middle of its wait; `meanwhile` the other side answers. */
async function freeze(kill: (signal: NodeJS.Signals) => void, meanwhile: () => void): Promise<void> {
  kill("SIGSTOP");
  meanwhile();
  // Longer than every limit.
  await Bun.sleep(FROZEN_MS);
  kill("SIGCONT");
}
