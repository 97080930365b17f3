import { readCall } from "./call-body.ts";
import { MB } from "../lib/sizes.ts";
import { answerEach } from "../lib/worker-says.ts";

const LARGE_BYTES = MB;

answerEach(async (body: Uint8Array<ArrayBuffer>) => {
  const output = readCall(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  const files = "refusal" in output ? [] : output.files;
  // Without this the worker keeps about three copies of a large body until its next collection.
  if (body.byteLength > LARGE_BYTES) setImmediate(() => Bun.gc(true));
  return { output, buffers: files.flatMap((file) => ("fault" in file ? [] : [file.bytes.buffer])) };
});
