import type { MessageRow } from "../../db/schema.ts";
import { allText } from "../../mail/reading/mail-text.ts";
import type { ParseOutcome } from "../../mail/reading/parse.ts";
import { hasAuthority } from "./authority.ts";

/** The material of a mail, which is all that is no instruction, with the `texts` of its files. */
export function materialOf(message: MessageRow, outcome: ParseOutcome, texts: string[] = []): string {
  const head = { subject: message.subject ?? "", sender: message.sender };
  if (!outcome.ok) return describe({ ...head, parts: [outcome.text] });
  const { rest_text, signature } = outcome.mail;
  const read = hasAuthority(message) ? [rest_text, signature] : [allText(outcome.mail)];
  return describe({ ...head, parts: [...read, ...texts] });
}

function describe(mail: { subject: string; sender: string | null; parts: string[] }): string {
  const head = [senderLine(mail), `Subject: ${mail.subject}`].join("\n");
  return [head, ...mail.parts.map((part) => part.trim()).filter(Boolean)].join("\n\n");
}

export function senderLine({ sender }: Pick<MessageRow, "sender">): string {
  return `From: ${sender ?? "unknown"}`;
}
