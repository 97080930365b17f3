import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { heldKinds } from "../../jobs/holds.ts";
import { suspectsWarning } from "../../jobs/suspects.ts";
import { erasingWarning } from "../retention/erase.ts";
import { inNetworks } from "../../net/networks.ts";

/** How long mail may wait for its turn to be sent before the operator is told. */
const LATE_SECONDS = 60;

/** Returns warnings about settings that are allowed but rarely meant on a server that receives mail from outside. */
export function cautionsOf({ outbound, server, smtp, metrics }: Config): string[] {
  const nameless = `smtp.hostname is "${smtp.hostname}", which is no public name: other servers will refuse mail from it, and custom domains cannot point to it. Set it to the name that your MX record points to.`;
  const open = metrics.listen !== "" && metrics.token === "" && !isOnThisMachine(metrics.listen);
  return [
    ...(speaksNoHttps(server) ? [noHttps(server)] : []),
    ...(outbound.mode === "capture" ? [CAPTURED] : []),
    ...(outbound.mode !== "capture" && !smtp.hostname.includes(".") ? [nameless] : []),
    ...(open ? [OPEN_FIGURES] : []),
    ...believedRelays(smtp).map(
      (relay) =>
        `smtp.trusted_relays has ${relay}, and smtp.trusted_networks has it too: every mail from there is believed, whoever wrote it. Take it out of smtp.trusted_networks.`,
    ),
  ];
}

function isOnThisMachine(listen: string): boolean {
  return /^(127\.|\[?::1\]?:|localhost:)/.test(listen);
}

/**
 * Returns whether base_url is https but nothing speaks HTTPS. A reverse proxy may do so: one on this machine, or one in
 * `trusted_proxies`.
 */
function speaksNoHttps({ base_url, tls, listen, trusted_proxies }: Config["server"]): boolean {
  const promised = /^https:/i.test(base_url) && tls === "off";
  return promised && !isOnThisMachine(listen) && trusted_proxies.length === 0;
}

function noHttps({ base_url, listen }: Config["server"]): string {
  return `server.base_url is ${base_url}, but server.tls is "off": this server speaks plain HTTP at ${listen}, and nothing of it answers at that address. Set server.tls to "acme" and server.listen to "0.0.0.0:443", or name the reverse proxy in front of it in server.trusted_proxies.`;
}

/**
 * Returns relays within trusted networks: everything they forward comes from their address, so all of it would be
 * believed.
 */
function believedRelays({ trusted_relays, trusted_networks }: Config["smtp"]): string[] {
  return trusted_relays.filter((entry) => inNetworks(entry.split(/[/=]/)[0] ?? "", trusted_networks));
}

const CAPTURED =
  'outbound.mode is "capture": replies and login codes are kept here, and nothing leaves this machine';
const OPEN_FIGURES =
  "metrics.listen is open to other machines and metrics.token is empty: whoever reaches it can read the figures";

/** Returns warnings by name about jobs that wait for the operator. */
export async function queueWarnings(app: App): Promise<Record<string, string>> {
  const held = (await heldKinds(app.db)).map(({ kind }) => kind);
  const dead = await app.db
    .selectFrom("jobs")
    .select(({ fn }) => fn.countAll<number>().as("jobs"))
    .where("status", "=", "dead")
    .executeTakeFirstOrThrow();
  const unsent = await unsentWarning(app);
  const suspects = await suspectsWarning(app);
  const late = held.includes("send_mail") ? undefined : await lateWarning(app);
  const erasing = held.includes("erase_bytes") ? undefined : await erasingWarning(app);
  return {
    ...(late === undefined ? {} : { sending: late }),
    ...(erasing === undefined ? {} : { erasing }),
    ...relayWarning(app),
    ...(suspects === undefined ? {} : { suspects }),
    ...(unsent === undefined ? {} : { unsent }),
    ...(held.length > 0 ? { held: `held by the operator: ${held.join(", ")}` } : {}),
    ...(dead.jobs > 0
      ? {
          dead: `${dead.jobs} ${dead.jobs === 1 ? "job was" : "jobs were"} given up; \`mailwright queue list --state dead\` shows them`,
        }
      : {}),
  };
}

/**
 * Returns a warning while the relay accepts no mail at all. Single mails that are retried later are no reason for one.
 */
function relayWarning({ relay: { trouble } }: App): { relay?: string } {
  if (trouble === null) return {};
  const since = new Date(trouble.since * 1_000).toISOString().replace(/\.\d+/, "");
  const after = "What is given up meanwhile goes out by `mailwright queue retry --all`.";
  const words = trouble.response.replace(/\.$/, "");
  return { relay: `no mail has gone out since ${since}: ${words}. ${after}` };
}

/** Returns a warning when mail has waited long for its turn to be sent; otherwise undefined. */
async function lateWarning({ db, config, now }: App): Promise<string | undefined> {
  if (config.outbound.mode === "capture") return undefined;
  const { mails, since } = await db
    .selectFrom("jobs")
    .select(({ fn }) => [fn.countAll<number>().as("mails"), fn.min("run_at").as("since")])
    .where("kind", "=", "send_mail")
    .where("status", "=", "pending")
    .where("run_at", "<=", now() - LATE_SECONDS)
    .executeTakeFirstOrThrow();
  if (mails === 0) return undefined;
  const minutes = Math.floor((now() - since) / 60);
  const wait = mails === 1 ? "1 mail waits for its turn" : `${mails} mails wait for their turn`;
  return `${wait} to be sent, the first for ${minutes} ${minutes === 1 ? "minute" : "minutes"}: mail servers are slow. \`mailwright queue list\` shows what waits.`;
}

/** Returns a warning when mail waits that was queued before outgoing mail was captured; otherwise undefined. */
export async function unsentWarning({ db, config }: App): Promise<string | undefined> {
  if (config.outbound.mode !== "capture") return undefined;
  const { mails } = await db
    .selectFrom("jobs")
    .select(({ fn }) => fn.countAll<number>().as("mails"))
    .where("kind", "=", "send_mail")
    .where("status", "=", "pending")
    .executeTakeFirstOrThrow();
  if (mails === 0) return undefined;
  const [subject, pronoun] =
    mails === 1
      ? ["1 mail that was queued for delivery waits", "It goes"]
      : [`${mails} mails that were queued for delivery wait`, "They go"];
  return `${subject}: outbound.mode is "capture". ${pronoun} out once that is "relay" or "direct" again.`;
}
