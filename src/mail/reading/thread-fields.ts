import type { MailHeaders } from "./headers.ts";
import type { SignedForm } from "./signed-form.ts";

/** Fields of a mail that answers another one, or passes it on. */
const ANSWER_FIELDS = ["in-reply-to", "references"];
const THREAD_FIELDS = [...ANSWER_FIELDS, "x-forwarded-message-id"];

/**
 * Whether the mail says that it answers or passes on another one; no program that shares a page writes these fields.
 */
export function saysItAnswers(headers: MailHeaders): boolean {
  return THREAD_FIELDS.some((name) => headers.get(name) !== undefined);
}

/**
 * Whether the mail answers or passes on another one, or may have done so before somebody took out an unsigned field.
 */
export function mayAnswer(headers: MailHeaders, form: SignedForm | undefined): boolean {
  if (saysItAnswers(headers)) return true;
  return form !== undefined && ANSWER_FIELDS.some((name) => !form.fields.includes(name));
}
