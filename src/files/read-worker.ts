import { readFile } from "./read-file.ts";
import type { SharedFile, WorkerReading } from "./reader.ts";

declare const self: Worker;

self.addEventListener("message", async ({ data }: MessageEvent<SharedFile>) => {
  const started = performance.now();
  const { filename, content_type, shared } = data;
  // Most libraries do not accept shared memory, so the bytes are copied.
  const reading = await readFile({ filename, content_type, bytes: new Uint8Array(shared).slice() });
  const answer: WorkerReading = { reading, took_ms: performance.now() - started };
  postMessage(answer, reading.image ? [reading.image.bytes.buffer as ArrayBuffer] : []);
});
postMessage("ready");
