import type { MessageRow } from "../../db/schema.ts";
import type { ForOthers } from "../../inbound/for-others.ts";
import { storedJson } from "../../lib/stored-json.ts";
import type { SignedForm } from "../../mail/reading/signed-form.ts";

/** What was found out about a mail when it came, as it is stored with its message. */
export interface StoredAuth {
  vouched?: boolean;
  undated?: boolean;
  lacks_dmarc?: boolean;
  unnamed?: boolean;
  for_others?: ForOthers;
  in_thread?: boolean;
  signed_form?: SignedForm;
}

/** Returns what is stored; nothing for a call, or if it is damaged. */
export function storedAuth({ auth }: Pick<MessageRow, "auth">): StoredAuth {
  return storedJson<StoredAuth>(auth ?? "{}", {});
}
