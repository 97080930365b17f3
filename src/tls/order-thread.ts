import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { AppError } from "../errors.ts";
import { startWorker } from "../lib/worker.ts";
import { AcmeError, type AcmeProblem } from "./acme-error.ts";
import type { Certificate } from "./pem.ts";

/** Messages to the thread: the order, and then each challenge that the listeners answer by now. */
export type OrderTask = { config: Config } | { shown: string };

/** Messages from the thread. `fault` describes an error, which cannot be posted as such. */
export type OrderNews =
  | { show: string; answer: string }
  | { hide: string }
  | { certificate: Certificate }
  | { fault: OrderFault };

export type OrderFault =
  | { of: "authority"; problems: AcmeProblem[]; retry_after_seconds: number | null }
  | { of: "server"; message: string; fix: string | undefined }
  | { of: "program"; name: string; message: string; stack: string | undefined };

/**
 * Orders a certificate on a thread that ends with the order: the library is needed every other month, and would stay in
 * memory until then. Throws AcmeError or AppError with what the operator should know.
 */
export async function orderOnThread(
  { config, certificates: { challenges } }: App,
  signal: AbortSignal,
): Promise<Certificate> {
  const worker = startWorker("tls/order-worker.ts");
  const { promise, resolve, reject } = Promise.withResolvers<Certificate>();
  const shown = new Set<string>();
  const hear = (news: OrderNews): void => {
    if ("show" in news) {
      challenges.set(news.show, news.answer);
      shown.add(news.show);
      worker.postMessage({ shown: news.show } satisfies OrderTask);
    } else if ("hide" in news) challenges.delete(news.hide);
    else if ("fault" in news) reject(errorOf(news.fault));
    else resolve(news.certificate);
  };
  const onEnd = (event: Event): void => {
    event.preventDefault();
    reject(new Error("The thread that ordered a certificate ended"));
  };
  worker.addEventListener("message", ({ data }: MessageEvent<OrderNews>) => hear(data));
  worker.addEventListener("error", onEnd);
  worker.addEventListener("close", onEnd);
  const onAbort = (): void => reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  worker.postMessage({ config } satisfies OrderTask);
  try {
    return await promise;
  } finally {
    // May be terminated at any point: the order is on disk and is continued later.
    worker.terminate();
    signal.removeEventListener("abort", onAbort);
    for (const token of shown) challenges.delete(token);
  }
}

function errorOf(fault: OrderFault): Error {
  if (fault.of === "authority") return new AcmeError(fault.problems, fault);
  if (fault.of === "server")
    return new AppError("unavailable", fault.message, fault.fix === undefined ? {} : { fix: fault.fix });
  return Object.assign(new Error(fault.message), { name: fault.name, stack: fault.stack });
}
