import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { InboxRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import type { Address } from "../../lib/mail-address.ts";
import { ADDRESS_TOKEN_ALPHABET, randomToken } from "../../lib/secrets.ts";
import { cutSlug, slugOf } from "../../lib/slug.ts";

/** The length of a token, about 59 bits: the address itself is a secret. */
const TOKEN_CHARS = 12;
const MAX_PREFIX_CHARS = 24;
/** A second try is already a matter of luck with 59 bits. */
const MAX_ADDRESS_TRIES = 10;

/**
 * Local parts that no inbox may have, so that it does not look like a role address (RFC 2142, RFC 5321 §4.5.1) or
 * like what the server itself writes from.
 */
const RESERVED = new Set([
  "postmaster",
  "abuse",
  "mailer-daemon",
  "hostmaster",
  "webmaster",
  "noreply",
  "no-reply",
  "mailwright",
  "b",
]);

/**
 * Local parts that nobody may choose besides. By mail to some of them, certificate authorities have the owner of a
 * domain shown (CA/Browser Forum, 3.2.2.4.4); others people take for the operator's.
 */
const KEPT_BACK = new Set([...RESERVED, "admin", "administrator", "root", "security", "ssladmin", "noc"]);

/**
 * The longest chosen local part: with the `+` and token of a reply address it stays within the 64 octets of RFC 5321.
 */
const MAX_CHOSEN_CHARS = 40;
const CHOSEN = /^[a-z0-9]+([._-][a-z0-9]+)*$/;

/** A chosen local part in the form in which it is compared. Throws `validation_error` for one that nobody may have. */
export function chosenLocalPart(given: string): string {
  const local_part = given.trim().toLowerCase();
  if (local_part.length > MAX_CHOSEN_CHARS || !CHOSEN.test(local_part))
    throw invalid(
      PATH,
      "invalid_local_part",
      `An address of your choice has 1 to ${MAX_CHOSEN_CHARS} letters and digits before the @, with single dots, hyphens or underscores between them.`,
    );
  if (KEPT_BACK.has(local_part))
    throw invalid(PATH, "reserved_local_part", `${local_part}@ is kept for who runs a mail server.`);
  return local_part;
}

const PATH = "body.local_part";

/** Throws `conflict` for an address that an inbox has, or once had. */
export async function refuseTaken(tx: Db, address: Pick<Address, "local_part" | "domain">): Promise<void> {
  if (await isFree(tx, address)) return;
  throw new AppError("conflict", `${addressOf(address)} belongs to an inbox, or once did.`, {
    fix: "Choose another name. An address that was given up is never given out again, so that nobody gets the mail of others.",
  });
}

/** `<prefix>-<token>`, or the token alone without a prefix. */
export function newLocalPart(prefix: string | null): string {
  const token = randomToken(TOKEN_CHARS, ADDRESS_TOKEN_ALPHABET);
  return prefix ? `${prefix}-${token}` : token;
}

/** A local part that no inbox of the domain has, or ever had. */
export async function freeLocalPart(
  tx: Db,
  { prefix, domain }: Pick<InboxRow, "prefix" | "domain">,
  make = newLocalPart,
): Promise<string> {
  for (let tries = 0; tries < MAX_ADDRESS_TRIES; tries++) {
    const local_part = make(prefix);
    if (await isFree(tx, { local_part, domain })) return local_part;
  }
  throw new Error(`No free address was found at ${domain}`);
}

/** Retires an address: from now on mail to it is refused, and no inbox ever gets it again. */
export async function retireAddress(app: App, tx: Db, address: string): Promise<void> {
  await tx
    .insertInto("retired_addresses")
    .values({ address, retired_at: app.now() })
    .onConflict((conflict) => conflict.column("address").doNothing())
    .execute();
}

/** The readable part of an address: `Q3 Reports & more` becomes `q3-reports-more`. Null if it is empty or reserved. */
export function prefixOf(label: string): string | null {
  const prefix = cutSlug(slugOf(label), MAX_PREFIX_CHARS);
  return prefix === "" || RESERVED.has(prefix) ? null : prefix;
}

export function addressOf(inbox: Pick<InboxRow, "local_part" | "domain">): string {
  return `${inbox.local_part}@${inbox.domain}`;
}

/** The inbox that a recipient address names, in any case and with any `+tag`. */
export async function findInboxByAddress(db: Db, address: Address): Promise<InboxRow | undefined> {
  const [row] = await inboxByAddress(db, address);
  return row;
}

const inboxByAddress = remembered((db, address: Pick<Address, "local_part" | "domain">) =>
  db
    .selectFrom("inboxes")
    .selectAll()
    .where("local_part", "=", address.local_part)
    .where("domain", "=", address.domain),
);

async function isFree(tx: Db, address: Pick<Address, "local_part" | "domain">): Promise<boolean> {
  const [taken] = await inboxByAddress(tx, address);
  if (taken) return false;
  const retired = await tx
    .selectFrom("retired_addresses")
    .select("address")
    .where("address", "=", addressOf(address))
    .executeTakeFirst();
  return retired === undefined;
}
