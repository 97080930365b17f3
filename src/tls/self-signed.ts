import { startWorker } from "../lib/worker.ts";
import type { Certificate } from "./pem.ts";

export type SelfSigned = Certificate | { fault: string };

/**
 * Creates a self-signed certificate, on a thread that ends with it: the library is needed once in the life of a data
 * folder, and would stay in memory as long as the server runs.
 */
export async function makeSelfSigned(hostname: string): Promise<Certificate> {
  const worker = startWorker("tls/self-signed-worker.ts");
  const { promise, resolve, reject } = Promise.withResolvers<SelfSigned>();
  const onEnd = (event: Event): void => {
    event.preventDefault();
    reject(new Error("The thread that made a certificate ended"));
  };
  worker.addEventListener("message", ({ data }: MessageEvent<SelfSigned>) => resolve(data));
  worker.addEventListener("error", onEnd);
  worker.addEventListener("close", onEnd);
  worker.postMessage(hostname);
  try {
    const made = await promise;
    if ("fault" in made) throw new Error(made.fault);
    return made;
  } finally {
    worker.terminate();
  }
}
