import { readCall } from "./call-body.ts";

declare const self: Worker;

self.addEventListener("message", ({ data }: MessageEvent<Uint8Array<ArrayBuffer>>) => {
  const call = readCall(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  const files = "refusal" in call ? [] : call.files;
  const buffers = files.flatMap((file) => ("fault" in file ? [] : [file.bytes.buffer]));
  postMessage(call, buffers);
});
postMessage("ready");
