import { join } from "node:path";
import type { Plan, Report } from "./clients.ts";
import { until } from "../support/until.ts";

const LOAD_MS = 15_000;

/** Clients that come and go at both doors, in a process of their own; see `clients.ts`. */
export function startClients(plan: Plan) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "clients.ts"), JSON.stringify(plan)], {
    stdin: "pipe",
    stdout: "pipe",
  });
  let last: Report | undefined;
  let turns = 0;
  const reading = (async () => {
    for await (const text of readLines(child.stdout)) last = JSON.parse(text) as Report;
  })();
  return {
    /** Both doors have shown so many certificates. */
    untilSeen: (count: number) =>
      until(
        async () => last?.http.certificates === count && last.smtp.certificates === count,
        LOAD_MS,
        async () => JSON.stringify(last),
      ),
    /** Whoever was making a connection has made it, and what it sent first has arrived here. */
    async turn(): Promise<void> {
      turns += 1;
      void child.stdin.write("\n");
      await child.stdin.flush();
      await until(
        async () => last?.turns === turns,
        LOAD_MS,
        async () => JSON.stringify(last),
      );
    },
    async end(): Promise<Report> {
      await child.stdin.end();
      await reading;
      return last as Report;
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  for await (const chunk of stream) {
    const lines = (text + Buffer.from(chunk).toString()).split("\n");
    text = lines.pop() ?? "";
    yield* lines;
  }
}
