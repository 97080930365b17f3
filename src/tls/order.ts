import { setTimeout as wait } from "node:timers/promises";
import type { Authorization, Order } from "acme-client";
import type { Config } from "../config/config.ts";
import type { Resolver } from "../net/dns.ts";
import { AcmeError, type AcmeProblem } from "./acme-error.ts";
import { type Authority, withAuthority } from "./authority.ts";
import { certificateNames } from "./names.ts";
import { type Certificate, pairFault } from "./pem.ts";
import { forgetOrder, readStoredOrder, storeCertificate, type StoredOrder, storeOrder } from "./store.ts";
import { timeoutSignal } from "../lib/wait-limit.ts";

const ORDER_MS = 5 * 60_000;
const FIRST_LOOK_MS = 250;
const MAX_LOOK_MS = 5_000;

/** Who orders a certificate. */
export interface Applicant {
  config: Config;
  resolver: Resolver;
  /** Makes the HTTP listeners answer a challenge with this (RFC 8555 §8.3); resolves once they do. */
  showProof: (token: string, answer: string) => Promise<void>;
  hideProof: (token: string) => void;
}

/**
 * Orders a certificate for the names of this server, proves them over HTTP (RFC 8555 §8.3), and stores it. Continues an
 * order that an earlier attempt left. Throws AcmeError or AppError with what the operator should know.
 */
export async function orderCertificate(applicant: Applicant): Promise<Certificate> {
  const { config } = applicant;
  return withAuthority(applicant, timeoutSignal(ORDER_MS), async (authority) => {
    const { stored, order } = await openOrder(applicant, authority);
    if (order.status === "pending") await proveNames(applicant, authority, order);
    const cert = await finish(authority, order, stored);
    const { directory, names, key } = stored;
    const fault = pairFault({ cert, key });
    if (fault === undefined) await storeCertificate(config, { directory, names, cert, key });
    await forgetOrder(config);
    if (fault !== undefined) throw refusal(`The certificate it gave is of no use. ${fault}`);
    return { cert, key };
  });
}

/**
 * Returns the earlier order, if it is for the same names and still valid, otherwise a new one. Its key is on disk from
 * the start.
 */
async function openOrder(
  { config }: Applicant,
  { client, crypto }: Authority,
): Promise<{ stored: StoredOrder; order: Order }> {
  const { directory } = config.acme;
  const names = certificateNames(config);
  const left = await readStoredOrder(config);
  if (left && left.directory === directory && Bun.deepEquals(left.names, names)) {
    const order = await client.getOrder({ url: left.url } as Order).catch(unlessRefused);
    if (order && order.status !== "invalid") return { stored: left, order };
  }
  const identifiers = names.map((value) => ({ type: "dns", value }));
  const order = await client.createOrder({ identifiers });
  const stored = { directory, names, url: order.url, key: String(await crypto.createPrivateEcdsaKey()) };
  await storeOrder(config, stored);
  return { stored, order };
}

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof AcmeError)) throw error;
}

/** Answers the challenges of all names that are not proven yet; reports every name that cannot be. */
async function proveNames(applicant: Applicant, authority: Authority, order: Order): Promise<void> {
  const all = await authority.client.getAuthorizations(order);
  const open = all.filter(({ status }) => status === "pending");
  const problems = await Promise.all(open.map((one) => prove(applicant, authority, one)));
  const found = problems.filter((problem) => problem !== undefined);
  if (found.length > 0) throw new AcmeError(found);
}

async function prove(
  { showProof, hideProof }: Applicant,
  { client, signal }: Authority,
  authorization: Authorization,
): Promise<AcmeProblem | undefined> {
  const challenge = overHttp(authorization);
  if (!challenge) throw refusal("It offers no proof over HTTP.");
  const { token } = challenge;
  await showProof(token, await client.getChallengeKeyAuthorization(challenge));
  try {
    const unlessPending = async () => {
      const [now] = await client.getAuthorizations({ authorizations: [authorization.url] } as Order);
      return now?.status === "pending" ? undefined : now;
    };
    if (challenge.status === "pending") {
      await client.completeChallenge(challenge).catch(async (error: unknown) => {
        // If a process that was killed had asked already, the authority may have checked since the order was read.
        if (!(await unlessPending())) throw error;
      });
    }
    const ended = await untilChanged(signal, unlessPending);
    return ended.status === "valid" ? undefined : problemOf(overHttp(ended)?.error, authorization);
  } finally {
    hideProof(token);
  }
}

function overHttp({ challenges }: Authorization) {
  return challenges.find(({ type }) => type === "http-01");
}

/** Finishes an order whose names are proven. Returns the chain in PEM. */
async function finish(
  { client, crypto, signal }: Authority,
  order: Order,
  { key, names }: StoredOrder,
): Promise<string> {
  const settled = (wanted: string[]) =>
    untilChanged(signal, async () => {
      const now = await client.getOrder(order);
      if (now.status === "invalid") throw new AcmeError([problemOf(now.error)]);
      return wanted.includes(now.status) ? now : undefined;
    });
  const ready = await settled(["ready", "processing", "valid"]);
  if (ready.status === "ready") {
    const [, csr] = await crypto.createCsr({ altNames: names }, key);
    await client.finalizeOrder(ready, csr);
  }
  return client.getCertificate(await settled(["valid"]));
}

/** Calls `look` at growing intervals until it returns something. */
async function untilChanged<T>(signal: AbortSignal, look: () => Promise<T | undefined>): Promise<T> {
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(2 * pause, MAX_LOOK_MS)) {
    const found = await look();
    if (found !== undefined) return found;
    await wait(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** Returns the reason that an order or a challenge gives for its failure. */
function problemOf(error: object | undefined, about?: Authorization): AcmeProblem {
  const { type = "", detail = "" } = (error ?? {}) as Partial<AcmeProblem>;
  return { type, detail, name: about?.identifier.value ?? "" };
}

function refusal(detail: string): AcmeError {
  return new AcmeError([{ type: "", detail, name: "" }]);
}
