import type { SMTPServerDataStream } from "smtp-server";
import type { Reception } from "../messages/receive.ts";

/** One mail from DATA to its end, however slowly it trickles in (RFC 5321 §4.5.3.2.5). */
const DATA_MS = 5 * 60_000;
/** Memory for all mails that are being taken, in mails of the largest size. */
const LARGEST_AT_ONCE = 8;

/** Reads a mail to its end and gives the answer of `take`, which gets null for a mail over the size limit. */
export type MailReader = (
  stream: SMTPServerDataStream,
  take: (raw: Buffer | null) => Promise<Reception>,
) => Promise<Reception>;

interface Arriving {
  chunks: Buffer[];
  bytes: number;
  /** It was the largest when memory ran out; the rest of it is read away. */
  dropped: boolean;
}

/** Together its mails hold no more than `LARGEST_AT_ONCE` of the largest size; the largest has to go first. */
export function createMailReader(max_message_bytes: number): MailReader {
  const budget = LARGEST_AT_ONCE * max_message_bytes;
  const arriving = new Set<Arriving>();
  let held = 0;
  const drop = (mail: Arriving): void => {
    held -= mail.bytes;
    Object.assign(mail, { chunks: [], bytes: 0, dropped: true });
  };
  const keep = (mail: Arriving, chunk: Buffer): void => {
    mail.chunks.push(chunk);
    mail.bytes += chunk.byteLength;
    held += chunk.byteLength;
    if (held > budget) drop([...arriving].reduce((most, other) => (other.bytes > most.bytes ? other : most)));
  };
  return async (stream, take) => {
    const mail: Arriving = { chunks: [], bytes: 0, dropped: false };
    arriving.add(mail);
    try {
      const inTime = await readWithin(DATA_MS, stream, (chunk) => {
        if (stream.sizeExceeded) drop(mail);
        else if (!mail.dropped) keep(mail, chunk);
      });
      arriving.delete(mail);
      if (!inTime) return TOO_SLOW;
      if (stream.sizeExceeded) return await take(null);
      return mail.dropped ? CROWDED : await take(Buffer.concat(mail.chunks));
    } finally {
      arriving.delete(mail);
      drop(mail);
    }
  };
}

const TOO_SLOW: Reception = {
  code: 421,
  enhanced: "4.4.2",
  text: "The mail took too long to arrive; please try again",
};
const CROWDED: Reception = {
  code: 452,
  enhanced: "4.3.1",
  text: "Too many large mails are arriving at once; please try again later",
};

/** False when the stream has not ended after `ms`; it is destroyed then. */
async function readWithin(
  ms: number,
  stream: SMTPServerDataStream,
  take: (chunk: Buffer) => void,
): Promise<boolean> {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stream.destroy();
  }, ms);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) take(chunk);
  } catch (error) {
    if (!late) throw error;
  } finally {
    clearTimeout(timer);
  }
  return !late;
}
