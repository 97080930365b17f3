import type { ParseOutcome } from "./parse.ts";
import { readMail } from "./parse-mail.ts";

declare const self: Worker;

self.addEventListener("message", async (event: MessageEvent<Uint8Array>) => {
  const outcome = await readMail(event.data);
  postMessage(outcome, buffersOf(outcome));
});
postMessage("ready");

function buffersOf(outcome: ParseOutcome): ArrayBuffer[] {
  if (!outcome.ok) return [];
  return outcome.mail.attachments.map(({ bytes }) => bytes.buffer as ArrayBuffer);
}
