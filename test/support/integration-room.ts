import type { ToolOutcome } from "../../src/trust/guard/tool.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { integrationTools } from "../../src/resources/integrations/tools.ts";
import { type Caller, testApp, type TestApp } from "./app.ts";

export interface IntegrationRoom extends TestApp {
  owner: Caller;
  connection_id: string;
  /** Calls a tool of the connection as a run does. */
  use(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutcome>;
}

interface RoomOptions {
  base_url?: string;
  credential?: string;
  headers?: Record<string, string>;
  config?: ConfigOverrides;
  timeout_ms?: number;
}

export const TOKEN = "token-5f0c93d1e7";

/** A server on which Ada has one connection to an integration. */
export async function integrationRoom(kind: string, options: RoomOptions = {}): Promise<IntegrationRoom> {
  await using stack = new AsyncDisposableStack();
  const t = stack.use(await testApp({ egress: { allow: ["127.0.0.1"] }, ...options.config }));
  const owner = await t.as("ada@example.com");
  const { base_url, headers = {}, credential = TOKEN } = options;
  const made = await owner.post("/connections", {
    kind,
    credential,
    headers,
    ...(base_url === undefined ? {} : { base_url }),
  });
  const connection_id: string = made.body.id;
  const row = await t.app.db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", connection_id)
    .executeTakeFirstOrThrow();
  const tools = integrationTools(t.app, row, options.timeout_ms);
  const built = stack.move();
  return {
    ...t,
    owner,
    connection_id,
    use: (name, args, signal = new AbortController().signal) => {
      const tool = tools.find((one) => one.name === name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      return tool.call(args, signal);
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}
