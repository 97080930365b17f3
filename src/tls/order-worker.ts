import { AppError } from "../errors.ts";
import { createResolver } from "../net/dns.ts";
import { AcmeError } from "./acme-error.ts";
import { orderCertificate } from "./order.ts";
import type { OrderFault, OrderNews, OrderTask } from "./order-thread.ts";

declare const self: Worker;

/** Resolvers that wait until the main thread answers a challenge, by token. */
const waiting = new Map<string, () => void>();

/** Receives the order once, then a message for each challenge that is answered. */
self.addEventListener("message", ({ data }: MessageEvent<OrderTask>) => {
  if ("shown" in data) waiting.get(data.shown)?.();
  else void order(data.config);
});

async function order(config: Extract<OrderTask, { config: unknown }>["config"]): Promise<void> {
  try {
    const certificate = await orderCertificate({
      config,
      resolver: createResolver({ servers: config.dns.servers }),
      async showProof(token, answer) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.set(token, resolve);
        tell({ show: token, answer });
        await promise;
      },
      hideProof: (token) => tell({ hide: token }),
    });
    tell({ certificate });
  } catch (error) {
    tell({ fault: faultOf(error) });
  }
}

function tell(news: OrderNews): void {
  postMessage(news);
}

function faultOf(error: unknown): OrderFault {
  if (error instanceof AcmeError)
    return { of: "authority", problems: error.problems, retry_after_seconds: error.retry_after_seconds };
  if (error instanceof AppError) return { of: "server", message: error.message, fix: error.extras.fix };
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return { of: "program", name, message, stack };
}
