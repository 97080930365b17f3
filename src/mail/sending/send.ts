import { HELD_WHILE_CAPTURED } from "../../jobs/holds.ts";
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
  /** The envelope sender; "" is the null reverse-path <>. */
  envelope_from: string;
  envelope_to: string;
  /** Whose share of a server's sessions it takes, as in the job. Mails without a share have one together. */
  share?: Share | null | undefined;
}

/**
 * The outcome of one attempt. `deferred` may succeed later, `failed` will not; `response` is a sentence for people with
 * the server's words in it. `code` and `enhanced` are the server's (RFC 5321, RFC 3463). `may_have_it`: the server got
 * all of the mail and did not answer. `crowded`: there was no attempt, because the server has as many mails from here
 * as it may have at once; retry after `room`.
 */
export type SendOutcome =
  | { status: "sent"; response: string; mx?: string; tls: boolean }
  | {
      status: "deferred";
      code?: number;
      enhanced?: string;
      response: string;
      may_have_it?: true;
      /** The problem is the relay itself, and would be the same for any mail. */
      of_relay?: true;
    }
  | {
      status: "failed";
      code?: number;
      enhanced?: string;
      response: string;
      /** The null reverse-path was refused: with another sender it may be accepted. */
      no_null_sender?: true;
      /** No server said so, but a look-up of ours in the DNS: see `doubts.ts`. */
      of_lookup?: true;
    }
  | { status: "crowded"; response: string; room: Promise<void> };

export interface SenderOptions {
  mode: "capture" | "relay" | "direct";
  /** smtp:// or smtps://, with user and password if the relay wants them; only for `relay`. */
  relay_url: string;
  /** The name in EHLO. */
  hostname: string;
  resolver: Resolver;
  /** Networks, addresses or names outside of the public internet that may be dialled (`egress.allow`). */
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
  /** From the start of a session to the server's request for the mail's content. */
  idle_ms: number;
  /**
   * From the last byte of a mail to the server's answer: giving up too early would send it twice (RFC 5321 §4.5.3.2.6).
   */
  confirm_ms: number;
  /** One attempt as a whole, with all servers it tries, except the wait for the final answer. */
  attempt_ms: number;
}

export interface Sender extends AsyncDisposable {
  /**
   * Sends a mail. Faults of servers and the network are outcomes; rejects with NoHandlesError if this machine could not
   * even try. `onBegin` is called when a server wants the content; from then on only its answer decides. If it throws,
   * the server gets nothing.
   */
  send(mail: OutgoingMail, onBegin?: () => void): Promise<SendOutcome>;
}

/** Default time-outs. An attempt with its last wait ends before the lease of its job. */
const TIMEOUTS: Timeouts = {
  connect_ms: 10_000,
  greeting_ms: 30_000,
  idle_ms: 120_000,
  confirm_ms: 600_000,
  attempt_ms: 240_000,
};

export const KEPT_HERE = "kept in the capture box";

/** Returns whether a mail was captured instead of sent. */
export function isKeptHere({ status, response }: { status: string; response: string | null }): boolean {
  return status === "sent" && response === KEPT_HERE;
}

/** Returns whether a mail was queued for delivery and waits, because outgoing mail is captured now. */
export function isHeldHere(
  { mode }: Pick<SenderOptions, "mode">,
  { completed }: { completed: number | null },
): boolean {
  return mode === "capture" && completed === null;
}

/** Creates the sender for `outbound.mode`. In `capture` it sends nothing: the caller keeps the mail. */
export function createSender(options: SenderOptions): Sender {
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  waitPatiently();
  matchReplies();
  if (options.mode === "relay") return relaySender(options, timeouts);
  if (options.mode === "direct") return directSender(options, timeouts);
  return {
    send: () => Promise.resolve({ status: "deferred", response: HELD_WHILE_CAPTURED }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
