import { listApiKeys } from "../../resources/accounts/api-keys.ts";
import { viewMe } from "../../resources/accounts/profile.ts";
import { listSecurityEvents } from "../../resources/accounts/security-events.ts";
import { costsEver } from "../../resources/billing/month-costs.ts";
import type { App } from "../../app.ts";
import { listConnections } from "../../resources/connections/connections.ts";
import { type ContextView, contextPortions } from "../../resources/contexts/contexts.ts";
import { earlierVersions } from "../../resources/contexts/versions.ts";
import type { UserRow } from "../../db/schema.ts";
import { listDomains } from "../../resources/domains/domains.ts";
import { listInboxes } from "../../resources/inboxes/inboxes.ts";
import { listTestSet } from "../../resources/test-runs/stars.ts";
import { listSchedules } from "../../resources/schedules/view.ts";
import { listEndpoints } from "../../resources/webhooks/endpoints.ts";
import { filesOf, mailsOf, sentMailsOf } from "./bytes.ts";
import {
  approvals,
  conversations,
  deliveries,
  events,
  ledger,
  messages,
  outgoingMails,
  replays,
  testRuns,
} from "./lines.ts";
import { MISSING, readmeOf } from "./readme.ts";
import type { ZipEntry } from "../../lib/zip.ts";

/**
 * Yields everything stored for an account, as files of an archive. Each part is read when it is needed, so that a slow
 * reader blocks nothing; what is deleted meanwhile is left out.
 */
export async function* exportOf(app: App, user: UserRow): AsyncGenerator<ZipEntry> {
  const { db } = app;
  const file = (name: string, content: ZipEntry["content"]): ZipEntry => ({
    name,
    modified: app.now(),
    content,
  });
  const json = (name: string, value: unknown): ZipEntry =>
    file(name, [Buffer.from(`${JSON.stringify(value, null, 2)}\n`)]);
  yield file("README.txt", [Buffer.from(readmeOf(app, user))]);
  yield json("account.json", { ...(await viewMe(app, user)), ...(await sidesOf(app, user)) });
  yield json("api-keys.json", await listApiKeys(db, user));
  yield json("security-events.json", await listSecurityEvents(db, user));
  yield json("inboxes.json", await listInboxes(app, user));
  yield json("connections.json", await listConnections(app, user));
  yield json("domains.json", await listDomains(app, user));
  yield json("webhooks.json", await listEndpoints(db, user));
  yield json("schedules.json", await listSchedules(db, user));
  yield* contexts(app, user, { file, json });
  yield file("ledger.csv", ledger(db, user));
  yield file("approvals.jsonl", approvals(app, user));
  yield file("conversations.jsonl", conversations(db, user));
  yield file("messages.jsonl", messages(db, user));
  yield file("replays.jsonl", replays(db, user));
  yield json("test-set.json", await listTestSet(db, user, {}));
  yield file("test-runs.jsonl", testRuns(app, user));
  yield file("outgoing-mails.jsonl", outgoingMails(db, user));
  yield file("events.jsonl", events(db, user));
  yield file("deliveries.jsonl", deliveries(db, user));
  const missing: string[] = [];
  yield* filesOf(app, user, missing);
  yield* mailsOf(app, user, missing);
  yield* sentMailsOf(app, user);
  if (missing.length > 0) yield file(MISSING, [Buffer.from(`${missing.join("\n")}\n`)]);
}

interface Makers {
  file: (name: string, content: ZipEntry["content"]) => ZipEntry;
  json: (name: string, value: unknown) => ZipEntry;
}

async function* contexts(app: App, user: UserRow, { file, json }: Makers): AsyncGenerator<ZipEntry> {
  const cards: Omit<ContextView, "body">[] = [];
  for await (const portion of contextPortions(app, user))
    for (const { body, ...card } of portion) {
      cards.push(card);
      yield { ...file(`contexts/${card.slug}.md`, [Buffer.from(body)]), modified: card.updated };
      for await (const { version, body: said, created: modified } of earlierVersions(app.db, card))
        yield { ...file(`contexts/${card.slug}.${version}.md`, [Buffer.from(said)]), modified };
    }
  yield json("contexts.json", cards);
}

/** Returns the rows of an account that no other file of the archive has. */
async function sidesOf({ db }: App, { id: user_id }: UserRow) {
  const browsers = db.selectFrom("sessions").select(["created", "expires", "client", "user_agent"]);
  const dead = db.selectFrom("suppressions").select(["address", "reason", "suppressed_at", "updated"]);
  const paid = db
    .selectFrom("billing_accounts")
    .select(["customer_id", "subscription_id", "status", "plan", "interval", "period_start", "period_end"]);
  return {
    sign_ins: await browsers.where("user_id", "=", user_id).orderBy("created").execute(),
    model_costs: await costsEver(db, { user_id }),
    undeliverable_addresses: await dead.where("user_id", "=", user_id).orderBy("address").execute(),
    billing: (await paid.where("user_id", "=", user_id).executeTakeFirst()) ?? null,
  };
}
