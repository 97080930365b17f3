/** A part of a mail's text. */
export interface Piece {
  own: boolean;
  text: string;
  /** For own words with inserted ones between: all of them, as the mail shows them. */
  shown?: string;
}

/** Returns own words and the rest as pieces, without empty ones. */
export function piecesOf(own: string, rest: string): Piece[] {
  return [
    { own: true, text: own.trim() },
    { own: false, text: rest.trim() },
  ].filter(({ text }) => text !== "");
}

/** Returns the sender's own words. */
export function ownOf(pieces: Piece[]): string {
  return joined(pieces.filter(({ own }) => own).map(({ text }) => text));
}

/** Returns the text of all pieces. */
export function textOf(pieces: Piece[]): string {
  return joined(pieces.map(({ text }) => text));
}

/** Returns whether all pieces are the sender's own, with nothing that may be inserted. */
export function isAllOwn(pieces: Piece[]): boolean {
  return pieces.every(({ own, shown }) => own && shown === undefined);
}

/** Joins texts, one below the other, without empty ones. */
export function joined(parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}
