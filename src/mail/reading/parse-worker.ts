import type { ParseOutcome } from "./parse.ts";
import { readMail } from "./parse-mail.ts";
import type { SignedForm } from "./signed-form.ts";

declare const self: Worker;

self.addEventListener("message", async ({ data }: MessageEvent<{ raw: Uint8Array; form?: SignedForm }>) => {
  const outcome = await readMail(data.raw, data.form);
  postMessage(outcome, buffersOf(outcome));
});
postMessage("ready");

function buffersOf(outcome: ParseOutcome): ArrayBuffer[] {
  if (!outcome.ok) return [];
  return outcome.mail.attachments.map(({ bytes }) => bytes.buffer as ArrayBuffer);
}
