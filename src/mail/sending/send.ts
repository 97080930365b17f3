import { HELD_HERE } from "../../jobs/holds.ts";
import type { Resolver } from "../../net/dns.ts";
import type { Share } from "../../jobs/queue.ts";
import type { Log } from "../../lib/log.ts";
import type { PolicyOf } from "./mta-sts.ts";
import { matchReplies } from "./matched-smtp.ts";
import { waitPatiently } from "./patient-smtp.ts";
import { directSender } from "./send-direct.ts";
import { relaySender } from "./send-relay.ts";

export interface OutgoingMail {
  /** The signed mail, CRLF line ends. */
  raw: Buffer;
  /** "" is the null sender <>. */
  envelope_from: string;
  envelope_to: string;
  /** Whose share of the sessions with a server it takes, as in the job; those without one have one together, and wait for their turn however many they are. */
  share?: Share | null | undefined;
}

/**
 * What became of one attempt. `deferred` is worth another attempt later, `failed` is not; `response` is a
 * sentence for people, with the server's words in it. `code` and `enhanced` are the server's (RFC 5321, RFC 3463).
 * `may_have_it`: the server was given all of the mail and did not say what became of it. `crowded`: there was no attempt,
 * because its server has as many mails from here as it may have at once; it is worth one after `room`.
 */
export type SendOutcome =
  | { status: "sent"; response: string; mx?: string; tls: boolean }
  | {
      status: "deferred";
      code?: number;
      enhanced?: string;
      response: string;
      may_have_it?: true;
      /** It is about the relay itself, and would be the same for any mail. */
      of_relay?: true;
    }
  | {
      status: "failed";
      code?: number;
      enhanced?: string;
      response: string;
      /** The null sender was refused: with another one it may be taken. */
      no_null_sender?: true;
    }
  | { status: "crowded"; response: string; room: Promise<void> };

export interface SenderOptions {
  mode: "capture" | "relay" | "direct";
  /** smtp:// or smtps://, with user and password if the relay wants them; only for `relay`. */
  relay_url: string;
  /** The name this server introduces itself by. */
  hostname: string;
  resolver: Resolver;
  /** Networks, addresses or names outside of the public internet that may be dialled. */
  egress_allow: string[];
  /** MTA-STS, in `direct`; without it no domain has a policy. */
  policyOf?: PolicyOf;
  log?: Pick<Log, "info">;
  /** The port of other people's mail servers, in `direct`. */
  port?: number;
  /** A certificate authority (PEM) to trust in place of the built-in ones. */
  ca?: string;
  timeouts?: Partial<Timeouts>;
}

export interface Timeouts {
  connect_ms: number;
  greeting_ms: number;
  /** From a session to the moment at which the server wants the mail. */
  idle_ms: number;
  /** From the last byte of a mail to the server's word: given up too early, it would come twice (RFC 5321 §4.5.3.2.6). */
  confirm_ms: number;
  /** One attempt as a whole, however many servers it tries, but for the wait for a server's word. */
  attempt_ms: number;
}

export interface Sender extends AsyncDisposable {
  /**
   * Never rejects for what a server or the network does; with NoHandlesError where this machine could not even try.
   * `onBegin`: a server wants the mail; from then on only its word tells what becomes of it. One that throws has it get nothing.
   */
  send(mail: OutgoingMail, onBegin?: () => void): Promise<SendOutcome>;
}

/** An attempt and the last wait in it end before the lease of its job does. */
const TIMEOUTS: Timeouts = {
  connect_ms: 10_000,
  greeting_ms: 30_000,
  idle_ms: 120_000,
  confirm_ms: 600_000,
  attempt_ms: 240_000,
};

export const KEPT_HERE = "kept in the capture box";

/** Whether a mail went nowhere, because outgoing mail is captured. */
export function isKeptHere({ status, response }: { status: string; response: string | null }): boolean {
  return status === "sent" && response === KEPT_HERE;
}

/** Whether a mail was queued for delivery and waits here, because outgoing mail is captured now. */
export function isHeldHere(
  { mode }: Pick<SenderOptions, "mode">,
  { completed }: { completed: number | null },
): boolean {
  return mode === "capture" && completed === null;
}

/** Sends mail the way `outbound.mode` says. In `capture` nothing leaves: keeping the mail is the caller's part. */
export function createSender(options: SenderOptions): Sender {
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  waitPatiently();
  matchReplies();
  if (options.mode === "relay") return relaySender(options, timeouts);
  if (options.mode === "direct") return directSender(options, timeouts);
  return {
    send: () => Promise.resolve({ status: "deferred", response: HELD_HERE }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
