import type { MailHeaders } from "./headers.ts";
import type { SignedForm } from "./signed-form.ts";

/** Fields of a reply, and of a forward. */
const ANSWER_FIELDS = ["in-reply-to", "references"];
const THREAD_FIELDS = [...ANSWER_FIELDS, "x-forwarded-message-id"];

/** Returns whether the mail says that it is a reply or a forward; no program that shares a page writes these fields. */
export function saysItAnswers(headers: MailHeaders): boolean {
  return THREAD_FIELDS.some((name) => headers.get(name) !== undefined);
}

/** Returns whether the mail is a reply or forward, or may have been one before somebody removed an unsigned field. */
export function mayAnswer(headers: MailHeaders, form: SignedForm | undefined): boolean {
  if (saysItAnswers(headers)) return true;
  return form !== undefined && ANSWER_FIELDS.some((name) => !form.fields.includes(name));
}
