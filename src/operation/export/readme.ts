import type { App } from "../../app.ts";
import type { UserRow } from "../../db/schema.ts";

/** The file that lists what is missing in the archive. */
export const MISSING = "missing.txt";

export function readmeOf(app: App, user: UserRow): string {
  const { raw_days, content_days, attachment_days } = app.config.retention;
  const moment = new Date(app.nowMs()).toISOString().slice(0, 16).replace("T", " ");
  return `Everything that Mailwright keeps for ${user.email}
Begun on ${moment} (UTC). The parts were read one after the other: what came or went in between
may be in one of them and not in another. Times are unix seconds, in UTC.

account.json          your account, its credits, what models have cost, the browsers that are signed in, and what is paid
api-keys.json         your API keys: what they are called and when they were used
security-events.json  the last sign-ins, refusals and changes
inboxes.json          your inboxes with their addresses and settings
connections.json      models, tool servers and services that you connected
domains.json          your own domains and their DNS records
webhooks.json         where events are sent to
schedules.json        what is done at which times
approvals.jsonl       calls of tools that waited for your consent, and what you said
contexts.json         your contexts; their texts are in contexts/, with what each said before, by version
ledger.csv            every movement of your credits
conversations.jsonl   a conversation in each line
messages.jsonl        a message in each line: what was asked, what was done, and the result
replays.jsonl         what messages came to that were run again otherwise
test-set.json         the messages that you starred, with what their answers should be
test-runs.jsonl       the runs of these, a table in each line
outgoing-mails.jsonl  mails that were sent to you or in your name, and what became of them
events.jsonl          what webhooks were told
deliveries.jsonl      how each of those arrived
attachments/          files, in a folder for each message
content/              what a call sent along as content, by message
raw/                  mails as they came in, by message
sent/                 answers as they were sent, by outgoing mail

What is missing
Secrets are not in here: passwords, API keys, credentials of connections, signing secrets.
Bytes are deleted some days after the work on a message has ended: mails after ${daysOf(raw_days)},
content after ${daysOf(content_days)}, files after ${daysOf(attachment_days)}. Their names and sizes stay with the message.
Of private messages nothing was kept but that they were there.
If there is a ${MISSING} here, the files and mails that it names are missing on the disk of the server.
`;
}

function daysOf(days: number): string {
  return days === 0 ? "no number of days (never)" : `${days} ${days === 1 ? "day" : "days"}`;
}
