import type { ParseOutcome } from "./parse.ts";
import { readMail } from "./parse-mail.ts";
import type { SignedForm } from "./signed-form.ts";

declare const self: Worker;

interface Input {
  raw: Uint8Array;
  form?: SignedForm;
  ours: boolean;
}

self.addEventListener("message", async ({ data: { raw, form, ours } }: MessageEvent<Input>) => {
  const outcome = await readMail(raw, { form, ours });
  postMessage(outcome, buffersOf(outcome));
});
postMessage("ready");

function buffersOf(outcome: ParseOutcome): ArrayBuffer[] {
  if (!outcome.ok) return [];
  return outcome.mail.attachments.map(({ bytes }) => bytes.buffer as ArrayBuffer);
}
