import { type MailHeaders, readHeaders } from "./headers.ts";
import { signedHeader, type SignedForm } from "./signed-form.ts";

/** The header of a stored mail, or only the fields in its signed form. */
export function headersAs(raw: Uint8Array, form: SignedForm | undefined): MailHeaders {
  const headers = readHeaders(raw);
  return form ? readHeaders(signedHeader(raw, headers.fields, form)) : headers;
}
