import { readCall } from "./call-body.ts";
import { MB } from "../lib/sizes.ts";
import { sayReady } from "../lib/worker-says.ts";

declare const self: Worker;

const LARGE_BYTES = MB;

self.addEventListener("message", ({ data }: MessageEvent<Uint8Array<ArrayBuffer>>) => {
  const call = readCall(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  const files = "refusal" in call ? [] : call.files;
  const buffers = files.flatMap((file) => ("fault" in file ? [] : [file.bytes.buffer]));
  postMessage(call, buffers);
  // Without this the thread keeps about three copies of a large body until its next collection.
  if (data.byteLength > LARGE_BYTES) Bun.gc(true);
});
sayReady();
