import { Readable } from "node:stream";

/** How much of a mail a server was given; `all` may still be on its way to it. */
export type Given = "nothing" | "part" | "all";

const PIECE_BYTES = 65_536;

/** The mail as a stream, which is read piece by piece as the server takes it. `onBegin`: it wants the first. */
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
