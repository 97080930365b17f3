import type { Delivery } from "../../api/shapes.ts";
import type { BadgeLook } from "../../ui/badge.tsx";

export const EVENT_WORDS: Record<string, string> = {
  "message.received": "A message was accepted",
  "message.completed": "A message was answered",
  "message.failed": "A message could not be answered",
  "message.skipped": "A message was left alone",
};

export const STATUSES: Record<Delivery["status"], { look: BadgeLook; word: string }> = {
  delivered: { look: "good", word: "Delivered" },
  pending: { look: "accent", word: "On its way" },
  failed: { look: "bad", word: "Failed" },
};

const FAULT_WORDS: Record<string, string> = {
  timeout: "Your program did not answer in time.",
  connection: "Nobody could be reached at this address.",
  tls: "The certificate of your program was not accepted.",
  blocked_address: "The address leads into a private network, where nothing is sent.",
  endpoint_disabled: "The endpoint was switched off, so it was not sent.",
  secret_unreadable: "Nobody can sign it any more. Make a new secret.",
  dropped: "Whoever runs this server took it out of the queue.",
  interrupted: "The server ended in the middle of it.",
};

/** The words for why a delivery failed. */
export function faultWords(error: string): string {
  const status = /^http_(\d+)$/.exec(error)?.[1];
  return status
    ? `Your program answered ${status}, and only 200 to 299 count.`
    : (FAULT_WORDS[error] ?? error);
}
