import { type MailHeaders, readHeaders } from "./headers.ts";
import { signedHeader, type SignedForm } from "./signed-form.ts";

/** Returns the header of a stored mail, or with `form` only its signed fields. */
export function headersAs(raw: Uint8Array, form: SignedForm | undefined): MailHeaders {
  const headers = readHeaders(raw);
  return form ? readHeaders(signedHeader(raw, headers.fields, form)) : headers;
}
