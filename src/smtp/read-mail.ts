import { refusalFor } from "../reasons.ts";
import type { SMTPServerDataStream } from "smtp-server";
import { createArrivals } from "../net/arrivals.ts";
import type { Reception } from "../inbound/receive.ts";
import { waitLimit } from "../lib/wait-limit.ts";

/** Time for one mail from DATA to its end, however slowly it comes in (RFC 5321 §4.5.3.2.5). */
const DATA_MS = 5 * 60_000;
/** Memory for all mails that are being received, counted in mails of the largest size. */
const LARGEST_AT_ONCE = 8;

/**
 * Reads a mail to its end and returns the result of `take`, which gets null for a mail over the size limit. `onPutOff`
 * is called with the reason when a mail was not read.
 */
export type MailReader = (
  stream: SMTPServerDataStream,
  handlers: {
    /** The party that shares the memory with others; see `senderParty`. */
    who: string;
    take: (raw: Buffer | null) => Promise<Reception>;
    onPutOff: (reason: "too_slow" | "crowded") => void;
  },
) => Promise<Reception>;

/** Makes a reader whose mails together hold no more memory than `LARGEST_AT_ONCE` mails of the largest size. */
export function createMailReader(max_message_bytes: number): MailReader {
  const begin = createArrivals(LARGEST_AT_ONCE * max_message_bytes);
  return async (stream, { who, take, onPutOff }) => {
    using mail = begin(who);
    const inTime = await readWithin(DATA_MS, stream, (chunk) => {
      if (stream.sizeExceeded) mail.drop();
      else mail.keep(chunk);
    });
    if (inTime && stream.sizeExceeded) return take(null);
    // A mail counts until it has been answered: waiting to be examined, it takes as much memory as while it comes in.
    if (inTime && !mail.dropped) return await take(mail.take());
    const reason = inTime ? "crowded" : "too_slow";
    onPutOff(reason);
    return refusalFor(reason);
  };
}

/** Returns false when the stream has not ended after `ms`, and destroys it. */
async function readWithin(
  ms: number,
  stream: SMTPServerDataStream,
  take: (chunk: Buffer) => void,
): Promise<boolean> {
  let late = false;
  const timer = waitLimit(ms, () => {
    late = true;
    stream.destroy();
  });
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) take(chunk);
  } catch (error) {
    if (!late) throw error;
  } finally {
    timer.clear();
  }
  return !late;
}
