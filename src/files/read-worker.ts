import { ownMs } from "../lib/processor-time.ts";
import { sayLoaded, sayReady } from "../lib/worker-says.ts";
import { readFile } from "./read-file.ts";
import type { SharedFile, WorkerReading } from "./reader.ts";

declare const self: Worker;

self.addEventListener("message", async ({ data }: MessageEvent<SharedFile>) => {
  let began_ms = ownMs();
  const onLoaded = (): void => {
    sayLoaded();
    began_ms = ownMs();
  };
  const { filename, content_type, shared } = data;
  // Most libraries do not accept shared memory, so the bytes are copied.
  const file = { filename, content_type, bytes: new Uint8Array(shared).slice() };
  const reading = await readFile(file, onLoaded);
  const answer: WorkerReading = { reading, took_ms: ownMs() - began_ms };
  postMessage(answer, reading.image ? [reading.image.bytes.buffer as ArrayBuffer] : []);
});
sayReady();
