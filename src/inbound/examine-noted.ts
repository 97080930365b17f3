import { type DnsNotes, type NotedResolver, type Question, withNotes } from "../net/dns-notes.ts";
import type { Resolver } from "../net/dns.ts";
import type { WorkOutcome } from "../lib/worker-pool.ts";
import { readHeaders } from "../mail/reading/headers.ts";
import { tagValue } from "../mail/reading/signatures.ts";
import { type AskedDns, type Examination, examineMail, type MailToExamine, type Noting } from "./examine.ts";

/** How many keys of signatures are looked up in advance for one mail. */
const MAX_KEYS = 20;
/** How many times one mail is read. Mostly the first is enough, and each reads the whole mail again. */
const MAX_ROUNDS = 5;
const NO_NOTES: DnsNotes = { answers: [], open: [] };
const SIGNATURES = new Set(["dkim-signature", "arc-seal", "arc-message-signature"]);
const DMARC = "_dmarc.";

/** Like `examineMail`, on the thread. If the mail comes with notes, its examination says what was asked of the DNS. */
export async function examineNoted(
  mail: MailToExamine,
  live: (dns: AskedDns) => Resolver,
): Promise<Examination> {
  const { noting } = mail;
  if (noting === undefined || mail.client === null) return examineMail(mail, live);
  const { notes, part } = noting;
  const noted = withNotes(notes, part === "head" ? live(mail.client.dns) : undefined);
  const [examination] = await Promise.all([
    examineMail(mail, () => noted.resolver),
    part === "head" ? askAhead(mail, noted, notes.open) : undefined,
  ]);
  return { ...examination, notes: noted.notes() };
}

/** Looks up the keys of all signatures: without the body it is unknown which are worth it. */
async function askAhead(mail: MailToExamine, { resolver }: NotedResolver, open: Question[]): Promise<void> {
  const keys = readHeaders(mail.raw)
    .fields.filter(({ name }) => SIGNATURES.has(name))
    .slice(0, MAX_KEYS)
    .map(({ value }) => `${tagValue(value, "s") ?? ""}._domainkey.${tagValue(value, "d") ?? ""}`);
  const asked = [...keys.map((name): Question => ({ name, rrtype: "TXT" })), ...open.flatMap(withParents)];
  await Promise.allSettled(asked.map(({ name, rrtype }) => resolver(name, rrtype)));
}

/**
 * Returns the questions that may follow from one: if a domain has no policy, that of a domain above it is looked up
 * next (RFC 9989 §4.10).
 */
function withParents(question: Question): Question[] {
  const { name, rrtype } = question;
  if (!name.startsWith(DMARC)) return [question];
  const labels = name.slice(DMARC.length).split(".");
  return labels.map((_label, at) => ({ name: DMARC + labels.slice(at).join("."), rrtype }));
}

/** Reads the whole mail, or its header alone, on a thread. */
type Read = (part: Noting["part"], notes: DnsNotes) => Promise<WorkOutcome<Examination>>;

/**
 * Examines a mail that must not occupy a thread while it waits for the DNS. First its header alone is read on a thread
 * where any number of mails wait, and what it asks of the DNS is noted. Then the whole mail is read with the noted
 * answers; what only the whole mail asks for is asked in the next round. After the last round the DNS seems not to
 * answer.
 */
export async function examineByNotes(read: Read): Promise<WorkOutcome<Examination>> {
  let notes = NO_NOTES;
  for (let round = 1; ; round += 1) {
    const head = await read("head", notes);
    if (!head.ok) return head;
    const whole = await read("whole", { answers: head.output.notes?.answers ?? [], open: [] });
    const { open = [] } = (whole.ok && whole.output.notes) || {};
    if (open.length === 0 || round === MAX_ROUNDS) return whole;
    notes = { answers: head.output.notes?.answers ?? [], open };
  }
}
