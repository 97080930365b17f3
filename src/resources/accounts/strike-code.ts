import type { App } from "../../app.ts";
import { hmacOfCode, validCodeOf } from "./codes.ts";

/** Six digits, as mails and people write them. */
const SIX_DIGITS = /(?<!\d)\d{3}[ \u00a0-]?\d{3}(?!\d)/g;
/** More of them in one text are struck out unread. */
const MAX_COMPARED = 5_000;
const STRUCK = "[sign-in code left out]";

/**
 * Returns a text of a tool without the code that signs in to the account at the moment: whoever has a tool look into the mailbox of
 * the owner is not to become the owner by that.
 */
export async function withoutSignInCode(app: App, user_id: string, text: string): Promise<string> {
  if (text.search(SIX_DIGITS) === -1) return text;
  const [open] = await validCodeOf(app, app.db, user_id);
  if (!open) return text;
  const known = new Map<string, boolean>();
  return text.replaceAll(SIX_DIGITS, (written) => {
    const code = written.replaceAll(/\D/g, "");
    let is_code = known.get(code);
    if (is_code === undefined) {
      is_code = known.size >= MAX_COMPARED || hmacOfCode(app, { id: user_id }, code) === open.code_hmac;
      known.set(code, is_code);
    }
    return is_code ? STRUCK : written;
  });
}
