import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { type Account, account, house, inbox, type ServerProcess } from "./house.ts";

/** More than the runtime has under way by itself. */
const HANGING = 300;

async function call(server: ServerProcess, { api_key }: Account, body: object): Promise<{ status: string }> {
  const response = await fetch(`${server.http}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": api_key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { status: string };
}

test("hundreds of requests to a model that answers nothing hold up no other request", async () => {
  const { promise: gate, resolve: letGo } = Promise.withResolvers<string>();
  await using model = startModelServer({
    reply: ({ messages }) => (messages.some(({ content }) => content.includes("hangs")) ? gate : "Quick."),
  });
  const llm = { kind: "openai_compatible", base_url: model.base_url, model: "m", api_key: "none" };
  await using at = await house({ llm, routing: { memory_mb: 4_096 } });
  const [eve, ada] = [await account(at, "eve@example.net"), await account(at, "ada@example.com")];
  await using server = await at.start();
  await inbox(server, eve);
  await inbox(server, ada);
  for (let index = 0; index < HANGING; index += 1)
    await call(server, eve, { instruction: `${index} hangs`, async: true });
  await model.received(HANGING);
  expect((await call(server, ada, { instruction: "Say hello" })).status).toBe("done");
  letGo("At last.");
});
