import { urlOf } from "../lib/web-address.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import * as acme from "acme-client";
import { AppError } from "../errors.ts";
import type { Config } from "../config/config.ts";
import type { Resolver } from "../net/dns.ts";
import { createSafeFetch, type SafeFetch } from "../net/guarded-fetch.ts";
import { networkFault, readCapped, retryAfterSeconds } from "../net/responses.ts";
import { AcmeError, type AcmeProblem } from "./acme-error.ts";
import { readCaFile } from "./ca-file.ts";
import { accountKey } from "./store.ts";
import { timeoutSignal } from "../lib/wait-limit.ts";
import { MB } from "../lib/sizes.ts";

const REQUEST_MS = 30_000;
const MAX_ANSWER_BYTES = MB;
const NO_ACCOUNT = "urn:ietf:params:acme:error:accountDoesNotExist";
const BAD_NONCE = "urn:ietf:params:acme:error:badNonce";

/** The fetch by which requests to an authority are sent. */
interface Wire {
  fetch: SafeFetch;
  signal: AbortSignal;
}

/** A session with a certificate authority. */
export interface Authority {
  client: acme.Client;
  crypto: typeof acme.crypto;
  /** Ends the session. */
  signal: AbortSignal;
}

/**
 * Opens our account at the authority of `acme.directory` and does `work` with it. Every request goes over our own
 * fetch. Throws AcmeError for what the authority refuses.
 */
export async function withAuthority<T>(
  self: { config: Config; resolver: Resolver },
  signal: AbortSignal,
  work: (authority: Authority) => Promise<T>,
): Promise<T> {
  const { config } = self;
  const { directory, email } = config.acme;
  // The library has one adapter for the whole process, so each call finds its own fetch by its async context.
  acme.axios.defaults.adapter = overOwnWire as NonNullable<typeof acme.axios.defaults.adapter>;
  const accountKeyPem = await accountKey(config, async () =>
    String(await acme.crypto.createPrivateEcdsaKey()),
  );
  const client = new acme.Client({ directoryUrl: directory, accountKey: accountKeyPem });
  return wires.run({ fetch: await ownFetch(self), signal }, async () => {
    await openAccount(client, email);
    return work({ client, crypto: acme.crypto, signal });
  });
}

const wires = new AsyncLocalStorage<Wire>();

/** Finds the account of our key, and creates it if there is none (RFC 8555 §7.3.1). */
async function openAccount(client: acme.Client, email: string): Promise<void> {
  const contact = email === "" ? [] : [`mailto:${email}`];
  const account = await client.createAccount({ onlyReturnExisting: true }).catch((error: unknown) => {
    if (error instanceof AcmeError && error.problems[0]?.type === NO_ACCOUNT)
      return client.createAccount({ termsOfServiceAgreed: true, contact });
    throw error;
  });
  if (contact[0] !== undefined && !account.contact?.includes(contact[0]))
    await client.updateAccount({ contact });
}

/** Returns a fetch that allows private networks, because the operator chose the authority. */
async function ownFetch({ config, resolver }: { config: Config; resolver: Resolver }): Promise<SafeFetch> {
  const allow = [...config.egress.allow, new URL(config.acme.directory).hostname.replace(/^\[|\]$/g, "")];
  const rules = { resolve: resolver, allow, setting: "egress.allow" };
  const ca = await readCaFile(config);
  return createSafeFetch(ca === undefined ? rules : { ...rules, ca });
}

/** A request as the library's HTTP client gives it to an adapter. */
interface WireRequest {
  url?: string;
  method?: string;
  data?: string;
  headers: Record<string, unknown>;
}

async function overOwnWire(request: WireRequest): Promise<object> {
  const { response, data } = await exchange(request);
  const problem = response.ok ? undefined : problemIn(data);
  // The library itself repeats a request after badNonce (RFC 8555 §6.5).
  if (!response.ok && problem?.type !== BAD_NONCE)
    throw new AcmeError(
      [problem ?? { type: "", detail: `It answered with HTTP status ${response.status}.`, name: "" }],
      { retry_after_seconds: retryAfterSeconds(response.headers) },
    );
  const headers = Object.fromEntries(response.headers);
  return { data, status: response.status, statusText: response.statusText, headers, config: request };
}

async function exchange(request: WireRequest): Promise<{ response: Response; data: string }> {
  const wire = wires.getStore();
  if (!wire) throw new Error("A request to an authority outside of withAuthority");
  const url = request.url ?? "";
  try {
    const response = await wire.fetch(url, {
      method: (request.method ?? "get").toUpperCase(),
      headers: textHeaders(request.headers),
      body: request.data ?? null,
      signal: AbortSignal.any([wire.signal, timeoutSignal(REQUEST_MS)]),
    });
    const { bytes } = await readCapped(response, MAX_ANSWER_BYTES);
    return { response, data: Buffer.from(bytes).toString() };
  } catch (error) {
    const fault = wire.signal.aborted ? null : networkFault(error);
    if (fault === null) throw error;
    throw new AppError(
      "unavailable",
      `The authority at ${urlOf(url)?.host} cannot be reached. ${fault.message}`,
    );
  }
}

function textHeaders(headers: Record<string, unknown>): Record<string, string> {
  const given = Object.entries(headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(given);
}

/** Returns the problem in an answer (RFC 8555 §6.7); undefined when the answer is something else, as from a proxy. */
function problemIn(text: string): AcmeProblem | undefined {
  try {
    const { type, detail } = JSON.parse(text) as { type?: unknown; detail?: unknown };
    return typeof type === "string"
      ? { type, detail: typeof detail === "string" ? detail : "", name: "" }
      : undefined;
  } catch {
    return undefined;
  }
}
