import { Readable } from "node:stream";

/** How much of a mail was passed to the server; `all` may still be in transit. */
export type Given = "nothing" | "part" | "all";

const PIECE_BYTES = 65_536;

/**
 * Returns the mail as a stream that is read as the server takes it. `onBegin` is called when it reads the first chunk.
 */
export function bodyOf(raw: Buffer, onBegin: () => void = () => undefined): Readable {
  let at = 0;
  return new Readable({
    highWaterMark: PIECE_BYTES,
    read() {
      if (at === 0) onBegin();
      const piece = raw.subarray(at, at + PIECE_BYTES);
      at += piece.length;
      this.push(piece.length === 0 ? null : piece);
    },
  });
}

export function givenOf(body: Readable): Given {
  if (body.readableEnded) return "all";
  return body.readableDidRead ? "part" : "nothing";
}
