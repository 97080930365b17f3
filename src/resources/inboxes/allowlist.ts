import { normalForm } from "../../lib/normal-form.ts";
import { allowlistOf } from "../../db/inbox-columns.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";
import { withoutQuotes } from "../../lib/mail-address.ts";
import { mailDomain } from "../../lib/mail-domain.ts";
import { isPublicProvider } from "../../net/public-providers.ts";

/**
 * Normalises the entries of an allowlist: `user@dom`, `@dom` or `*@dom` (that domain exactly), `@*.dom` (its
 * subdomains). Duplicates are dropped; anything else throws `validation_error`.
 */
export function normalizeAllowlist(entries: string[], path = "body.allowlist_senders"): string[] {
  return [...new Set(entries.map((entry, index) => normalizeEntry(entry, `${path}.${index}`)))];
}

/** Whether an address, as `fromMailbox` gives it, is on a normalised list. */
export function isListed(address: string, entries: string[]): boolean {
  const domain = address.slice(address.lastIndexOf("@") + 1);
  return entries.some((entry) => {
    if (entry.startsWith("@*.")) return domain.endsWith(entry.slice(2));
    if (entry.startsWith("@")) return domain === entry.slice(1);
    return address === entry;
  });
}

/** Whether the account of an inbox knows an address: it is its owner's own, and proven, or listed for the inbox. */
export function isKnownAddress(
  address: string,
  { inbox, owner }: { inbox: Pick<InboxRow, "allowlist_senders">; owner: KnownOwner | undefined },
): boolean {
  if (owner?.email_verified === 1 && owner.email === address) return true;
  return isListedRecipient(address, allowlistOf(inbox));
}

type KnownOwner = Pick<UserRow, "email" | "email_verified">;

/**
 * Whether an answer may go to an address because a normalised list has it. An entry for a whole public provider lets
 * its users write, but one of them may name another as the recipient: so it does not count here.
 */
function isListedRecipient(address: string, entries: string[]): boolean {
  const proving = entries.filter((entry) => {
    const [local_part, domain = ""] = entry.split("@");
    return local_part !== "" || !isPublicProvider(domain.replace(/^\*\./, ""));
  });
  return isListed(address, proving);
}

function normalizeEntry(entry: string, path: string): string {
  const text = withoutQuotes(normalForm("NFC", entry.trim()).toLowerCase().replace(/^\*@/, "@"));
  const at = text.lastIndexOf("@");
  const local = text.slice(0, at);
  const wildcard = local === "" && text.startsWith("@*.");
  const domain = mailDomain(text.slice(at + (wildcard ? 3 : 1)));
  const valid = at !== -1 && /^[^\s\p{C}@*<>(),;:"[\]\\]*$/u.test(local) && domain?.includes(".");
  if (valid) return `${local}@${wildcard ? "*." : ""}${domain}`;
  throw invalid(
    path,
    "invalid_sender",
    `"${entry.slice(0, 100)}" is neither an address (ada@example.com), a domain (@example.com) nor its subdomains (@*.example.com).`,
  );
}
