import { writeFileSync } from "node:fs";
import { createGathering, type Sent, sendInPieces } from "./pieces.ts";

/** What a worker says once it can work. */
export const READY = "ready";
/** What it says once it has loaded what an input needs. */
export const LOADED = "loaded";
/** What makes a process the first that the system ends where memory is short (`oom_score_adj`, proc(5)). */
const FIRST_TO_GO = "1000";

/**
 * Answers each input of the pool with what `work` returns; `buffers` are those of its large arrays of bytes. `onLoaded`
 * is to be called where something has to be loaded for an input, when it is there: the work begins only then. A module
 * is ready once it has called this.
 */
export function answerEach(
  work: (input: never, onLoaded: () => void) => Promise<{ output: unknown; buffers?: ArrayBuffer[] }>,
): void {
  standApart();
  const send = (sent: Sent): void => void process.send?.(sent);
  const gather = createGathering(async (input) => {
    const { output, buffers = [] } = await work(input as never, () => send({ message: LOADED, holes: [] }));
    await sendInPieces(send, output, buffers);
  });
  process.on("message", (sent) => gather(sent as Sent));
  send({ message: READY, holes: [] });
}

function standApart(): void {
  // A signal to a terminal or to a service is for the server, which says when its workers end.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);
  process.on("disconnect", () => process.exit(0));
  try {
    writeFileSync("/proc/self/oom_score_adj", FIRST_TO_GO);
  } catch {
    // Only Linux has it, and not everywhere may it be written.
  }
}
