import type { ConfigOverrides } from "../../src/config/config.ts";
import { type Answer, type Caller, type TestApp, testApp } from "./app.ts";
import { startStripe, type StripeEvent, type StripeStandIn } from "./stripe-stand-in.ts";

export interface BillingDesk extends TestApp {
  stripe: StripeStandIn;
  ada: Caller;
  /** What ada sees of herself. */
  me(): Promise<{ plan: string; credits: Record<"allowance" | "topup" | "remaining" | "resets_at", number> }>;
  /** Sends what Stripe would send, one after the other, and gives the last answer. */
  deliver(...events: StripeEvent[]): Promise<Answer>;
  /** The address of the page on which ada pays. */
  page(path: string, body?: object): Promise<string>;
  /** Has ada subscribe and pay, and tells the server. */
  subscribe(body?: object): Promise<void>;
}

/** The whole server beside a stand-in for Stripe; ada begins on the Free plan, with an inbox. */
export async function billingDesk(overrides: ConfigOverrides = {}): Promise<BillingDesk> {
  let now = 0;
  const stripe = startStripe(() => now);
  const t = await testApp({ llm: { kind: "demo" }, ...stripe.config, ...overrides });
  const clock = { ...t.clock, advance: (span: string) => (t.clock.advance(span), tell()) };
  const tell = (): void => void (now = t.app.now());
  tell();
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  const deliver = async (...events: StripeEvent[]): Promise<Answer> => {
    let answer: Answer | undefined;
    for (const event of events) answer = await t.request("/billing/webhook", stripe.signed(event));
    if (answer === undefined) throw new Error("There is nothing to deliver");
    return answer;
  };
  const page = async (path: string, body?: object): Promise<string> => {
    const answer = await ada.post(path, body);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    return answer.body.url;
  };
  return {
    ...t,
    clock,
    stripe,
    ada,
    deliver,
    page,
    me: async () => (await ada.get("/auth/me")).body,
    subscribe: async (body) => {
      await deliver(...stripe.pay(await page("/billing/checkout", body)));
    },
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      await stripe[Symbol.asyncDispose]();
    },
  };
}
