import type { ConfigOverrides } from "../../src/config/config.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { happens } from "../support/happens.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { forgetNotices } from "../support/notices.ts";

export interface Received {
  headers: Record<string, string>;
  body: string;
}

export interface HookDesk extends TestApp {
  ada: Caller;
  dns: TestDnsServer;
  /** What came in at `hook_url`, oldest first. */
  received: Received[];
  hook_url: string;
  /** What is answered there from now on. */
  answer(response: () => Response | Promise<Response>): void;
  /** Makes an endpoint at `hook_url`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever the server said
  hook(settings?: object): Promise<any>;
  /** Something happens that her endpoints are told of; gives the id of the event. */
  happen(type?: "message.completed" | "message.failed"): Promise<string>;
}

/** A server that asks a DNS of its own, an account, and a receiver on loopback that the operator allows. */
export async function hookDesk(config: ConfigOverrides = {}): Promise<HookDesk> {
  await using stack = new AsyncDisposableStack();
  const received: Received[] = [];
  let respond: () => Response | Promise<Response> = () => new Response(null, { status: 204 });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      received.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
      return respond();
    },
  });
  stack.defer(() => server.stop(true));
  const dns = stack.use(await startDnsServer());
  const t = stack.use(
    await testApp({ webhooks: { allow: ["127.0.0.1"] }, ...config, dns: { servers: [dns.address] } }),
  );
  const ada = await t.as("ada@example.com");
  const hook_url = `http://127.0.0.1:${server.port}/hook`;
  const built = stack.move();
  return {
    ...t,
    ada,
    dns,
    received,
    hook_url,
    answer: (response) => void (respond = response),
    hook: async (settings = {}) => {
      const { body } = await ada.post("/v1/webhooks", { url: hook_url, event_types: ["*"], ...settings });
      await forgetNotices(t.app);
      return body;
    },
    happen: (type = "message.completed") => happens(t, ada, { type }),
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}
