import type { App } from "../../app.ts";
import type { CustomDomainRow } from "../../db/schema.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import { canBeLookedUp, withoutName } from "./nameless.ts";
import { type Findings, type RecordView, viewsWith } from "./records.ts";

const LABELS = { ownership: "Ownership", inbound_mx: "Inbound mail" } as const;

/** How many values of a record a letter shows, and how many characters of each: other people publish them. */
const SHOWN_VALUES = 3;
const SHOWN_CHARS = 120;

/** Returns those of the two required records of a domain that were not seen. */
export function unseen({ ownership, inbound_mx }: Findings) {
  return [
    { label: LABELS.ownership, ...ownership },
    { label: LABELS.inbound_mx, ...inbound_mx },
  ].filter(({ status }) => status !== "verified");
}

/** The letter for an active domain whose records are gone. */
export async function lossLetter(
  app: App,
  row: CustomDomainRow,
  { findings, days }: { findings: Findings; days: number },
): Promise<QueueLetter> {
  return prepareLetter(app, {
    user_id: row.user_id,
    to: await ownerOf(app, row),
    subject: `The DNS records of ${row.domain} are not there any more`,
    markdown: [
      `For ${days} days the DNS has not shown what your domain **${row.domain}** needs, so mail to its addresses may not arrive.`,
      ...unseen(findings).map(({ label, reason }) => `- ${label}: ${reason}`),
      "The domain stays active here, and nothing was removed. The list of your custom domains shows every record with its value; once they are back, all is well again.",
    ].join("\n\n"),
  });
}

/** The letter for a domain that has waited too long: what was found, what is missing, and how to go on. */
export async function givenUpLetter(
  app: App,
  row: CustomDomainRow,
  { findings, hindrance, next }: { findings: Findings; hindrance: string | null; next: string },
): Promise<QueueLetter> {
  const to = await ownerOf(app, row);
  const keys = await keyRows(app.db, row.id);
  const { hostname } = app.config.smtp;
  const missing = viewsWith(app, row, { owner_email: to, keys, findings }).filter(
    ({ required, status }) => required && status !== "verified",
  );
  const causes = canBeLookedUp(hostname)
    ? hindrance === null
      ? missing.map(lineOf)
      : [hindrance]
    : [withoutName(hostname)];
  return prepareLetter(app, {
    user_id: row.user_id,
    to,
    subject:
      hindrance === null
        ? `The DNS records of ${row.domain} were not seen within 7 days`
        : `Your domain ${row.domain} is not active after 7 days`,
    markdown: [
      `Your domain **${row.domain}** has waited for 7 days and is not active, so no inbox can have an address there yet.`,
      ...causes,
      `${next} As soon as this is mended you can have it look at once: press “Look now” on the page [Domains](${app.base_url}/app/domains), which shows every record.`,
    ].join("\n\n"),
  });
}

function lineOf({ purpose, type, name, value, priority, found, reason }: RecordView): string {
  const label = purpose === "ownership" ? LABELS.ownership : LABELS.inbound_mx;
  const wanted = priority === null ? value : `${priority} ${value}`;
  const seen = found.slice(0, SHOWN_VALUES).map(shown).join(", ");
  return `- ${label}: ${reason} To publish: ${type} record of \`${name}\` with the value \`${wanted}\`. Found: ${seen || "nothing"}.`;
}

function shown(value: string): string {
  return `\`${value.replaceAll(/[`\s]+/g, " ").slice(0, SHOWN_CHARS)}\``;
}

/** Returns the mail address of the account that has a domain. */
export async function ownerOf(app: App, { user_id }: Pick<CustomDomainRow, "user_id">): Promise<string> {
  const { email } = await app.db
    .selectFrom("users")
    .select("email")
    .where("id", "=", user_id)
    .executeTakeFirstOrThrow();
  return email;
}
