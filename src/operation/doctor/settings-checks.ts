import {
  findAdministrator,
  lacksAdministrator,
  NAME_ADMINISTRATOR,
  NO_ADMINISTRATOR,
} from "../../resources/accounts/administrator.ts";
import { withoutQuote } from "../../ai/llm-faults.ts";
import { MODEL_KINDS, type ModelKind } from "../../ai/providers.ts";
import { writtenMoment } from "../../lib/written-moment.ts";
import { strandedInboxes } from "../../resources/inboxes/leave-domain.ts";
import { isPublicAddress } from "../../net/guarded-fetch.ts";
import { inNetworks } from "../../net/networks.ts";
import { isPublicName } from "../../net/domain-owner.ts";
import { readPeers } from "../../smtp/peers.ts";
import { type Bench, type Check, fail, ok, type Outcome, skip, warn } from "./check.ts";
import { dayAt } from "../../lib/durations.ts";

const MODELS = (Object.keys(MODEL_KINDS) as ModelKind[]).filter((kind) => kind !== "demo");
/** The most connections that are named. */
const MAX_NAMED = 3;

/** Fewer mails could be the operator's own tests. */
const MIN_MAILS = 8;

export const SETTINGS_CHECKS: Check[] = [
  { name: "server", run: checkServer },
  { name: "mail host name", run: checkHostname },
  { name: "addresses", run: checkAddresses },
  { name: "outgoing mail", run: checkOutbound },
  { name: "registration", run: checkRegistration },
  { name: "administrator", run: checkAdministrator },
  { name: "where mail comes from", run: checkPeers },
  { name: "models of accounts", run: checkModels },
];

async function checkServer({ app, running }: Bench): Promise<Outcome> {
  if (running) return ok(`A server runs on ${app.config.data.dir}.`);
  return warn(
    `No server runs on ${app.config.data.dir}, so what it answers could not be looked at.`,
    "Start it: mailwright serve",
  );
}

async function checkHostname({ app }: Bench): Promise<Outcome> {
  const { hostname } = app.config.smtp;
  if (isPublicName(hostname)) return ok(`smtp.hostname is ${hostname}.`);
  return fail(
    `smtp.hostname is "${hostname}", which is no public name: other servers refuse mail from it.`,
    "Set it to the name that your MX record points to.",
  );
}

/** Checks what the next start would do to the addresses of inboxes. */
async function checkAddresses({ app }: Bench): Promise<Outcome> {
  const { domain } = app.config.smtp;
  const rows = await strandedInboxes(app, app.db)
    .select(({ fn }) => ["domain", fn.countAll<number>().as("inboxes")])
    .groupBy("domain")
    .orderBy("domain")
    .execute();
  if (rows.length === 0) return ok("Every inbox is at a domain that mail is taken for.");
  const found = rows.map((row) => `${row.inboxes} at ${row.domain}`).join(", ");
  const listed = rows.map((row) => JSON.stringify(row.domain)).join(", ");
  return warn(
    `smtp.domain is ${domain}, but there are inboxes elsewhere: ${found}. The next start moves them to ${domain}, and mail to their old addresses is refused from then on.`,
    `If people still write to the old addresses, list their domains before that: smtp.former_domains = [${listed}]`,
  );
}

async function checkOutbound({ app }: Bench): Promise<Outcome> {
  const { mode } = app.config.outbound;
  if (mode !== "capture") return ok(`outbound.mode is "${mode}".`);
  return warn(
    'outbound.mode is "capture": replies and login codes are kept here, and nothing leaves this machine.',
    'Set it to "relay" or "direct".',
  );
}

async function checkRegistration({ app }: Bench): Promise<Outcome> {
  if (app.config.auth.registration === "closed") return ok("Only the operator makes accounts.");
  const spend = app.config.llm.kind === "" ? "" : ", and spend the model under [llm]";
  return warn(
    `Everybody with a mail address can make an account here${spend}.`,
    'Set auth.registration = "closed", unless strangers are meant to have accounts.',
  );
}

async function checkAdministrator({ app }: Bench): Promise<Outcome> {
  if (!(await lacksAdministrator(app.db))) {
    const found = await findAdministrator(app);
    return ok(`${found?.email ?? "The account that is made first"} administers this server.`);
  }
  return fail(
    `${NO_ADMINISTRATOR}: mail to postmaster@ is refused, and so is the contact form.`,
    NAME_ADMINISTRATOR,
  );
}

/**
 * Checks where mail comes from: port forwarding of containers can make every client seem to be one private address,
 * which breaks SPF and more.
 */
async function checkPeers({ app }: Bench): Promise<Outcome> {
  const peers = await readPeers(app.db);
  if (!peers || peers.mails < MIN_MAILS) return skip("Too few mails have come in to tell.");
  const [address = "", ...others] = peers.addresses;
  if (others.length > 0 || isPublicAddress(address))
    return ok("Mail comes in from the addresses of its senders.");
  const day = dayAt(peers.since);
  const found = `All mails since ${day} came from ${address}, a private address: if some were from outside, their real address is hidden.`;
  const mend =
    "Let what forwards the port pass the address on (PROXY protocol and smtp.proxy_protocol), or use the network of the host.";
  if (inNetworks(address, app.config.smtp.trusted_networks))
    return fail(
      `${found} It is in smtp.trusted_networks, so everybody counts as proven.`,
      `Take it out there. ${mend}`,
    );
  return warn(found, mend);
}

/** Looks at how the models that accounts have connected were last found. Asking them is what those accounts pay for. */
async function checkModels({ app }: Bench): Promise<Outcome> {
  const rows = await app.db
    .selectFrom("connections")
    .innerJoin("users", "users.id", "connections.user_id")
    .select(["label", "connections.status", "last_error", "last_tested_at", "users.email"])
    .where("kind", "in", MODELS)
    .orderBy("connections.id")
    .execute();
  if (rows.length === 0) return skip("No account has connected a model, other than the demo.");
  const bad = rows.filter(({ status }) => status === "error" || status === "needs_auth");
  const untested = rows.filter(({ status }) => status === "untested").length;
  const never = untested === 0 ? "" : ` ${untested} of them were never tested or asked as they are now.`;
  const asked = `${never} None is asked here.`;
  if (bad.length === 0)
    return ok(
      `Nothing is known against any model connection of an account; there are ${rows.length} of them.${asked}`,
    );
  const named = bad.slice(0, MAX_NAMED).map(({ label, email, last_error, last_tested_at }) => {
    const since = last_tested_at === null ? "" : `, at least since ${writtenMoment(last_tested_at, "UTC")}`;
    return `“${label}” of ${email}${since}: ${withoutQuote(last_error ?? "")}`;
  });
  const more = bad.length > MAX_NAMED ? ` And ${bad.length - MAX_NAMED} more.` : "";
  return warn(
    `${bad.length} of ${rows.length} model connections of accounts did not work when last tested or asked. ${named.join(" ")}${more}${asked}`,
    "It is mended on its page of the dashboard, under “Connections”, by whoever has it; the next message then shows whether it answers.",
  );
}
