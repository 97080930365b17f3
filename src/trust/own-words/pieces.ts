/** A part of a mail's text. */
export interface Piece {
  own: boolean;
  text: string;
  /** Where a mail program may have put words between own ones: all of them, as the mail shows them. */
  shown?: string;
}

/** Own words and what stands below them, without what is empty. */
export function piecesOf(own: string, rest: string): Piece[] {
  return [
    { own: true, text: own.trim() },
    { own: false, text: rest.trim() },
  ].filter(({ text }) => text !== "");
}

/** The sender's own words. */
export function ownOf(pieces: Piece[]): string {
  return joined(pieces.filter(({ own }) => own).map(({ text }) => text));
}

/** All of it. */
export function textOf(pieces: Piece[]): string {
  return joined(pieces.map(({ text }) => text));
}

/** Whether all of it is the sender's own, and nothing in it may be inserted. */
export function isAllOwn(pieces: Piece[]): boolean {
  return pieces.every(({ own, shown }) => own && shown === undefined);
}

/** Texts one below the other, without what is empty. */
export function joined(parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}
