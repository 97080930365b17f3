import type { Part } from "./parse-structure.ts";

/** The text parts of a mail, by their role. */
export interface Body {
  /** The text parts of the one author, in order: the first one, and those that continue it below files. */
  texts: Part[];
  pages: Part[];
  /** Text parts that are content: below the first one, or after an attached mail. */
  others: Part[];
  /** Text parts that are files. */
  named: Part[];
}

/**
 * Sorts the text parts of a mail. The sender's words can only be in the first one, in its alternatives and in its
 * continuation below a picture: any further part may be a forwarded mail or what a mailing list added.
 */
export function chooseBody(parts: Part[]): Body {
  const texts = parts.filter((part) => part.textContent !== undefined && !part.children.length);
  const named = texts.filter((part) => part.node.filename);
  const unnamed = texts.filter((part) => !part.node.filename);
  const first = unnamed[0];
  const mailBefore = parts.findIndex(isMail);
  if (first === undefined || (mailBefore !== -1 && mailBefore <= parts.indexOf(first))) {
    return { texts: [], pages: [], others: unnamed, named };
  }
  const group = alternativeOf(first);
  const together = group === null ? [first] : unnamed.filter((part) => alternativeOf(part) === group);
  const written = (type: string): Part[] => writtenOn(together.find((part) => part.contentType === type));
  const chosen = { texts: written("text/plain"), pages: written("text/html") };
  const own = new Set([...chosen.texts, ...chosen.pages]);
  return { ...chosen, others: unnamed.filter((part) => !own.has(part)), named };
}

/**
 * Returns a part and those that continue it: Apple's programs begin a new part below each picture between the words.
 */
function writtenOn(first: Part | undefined): Part[] {
  if (first === undefined) return [];
  const around = first.parent?.contentType === "multipart/mixed" ? first.parent.children : [first];
  const written = [first];
  let above = first;
  for (const part of around.slice(around.indexOf(first) + 1)) {
    const goes_on = isText(part) && part.contentType === first.contentType && !isText(above);
    if (goes_on) written.push(part);
    else if (!isPicture(part)) break;
    above = part;
  }
  return written;
}

function isText({ textContent, node }: Part): boolean {
  return textContent !== undefined && !node.filename;
}

/** Below a picture people go on writing. Below another file a gateway may have put its own words. */
function isPicture({ contentType, textContent, children }: Part): boolean {
  return textContent === undefined && children.length === 0 && (contentType || "").startsWith("image/");
}

function alternativeOf(part: Part): Part | null {
  let found: Part | null = null;
  for (let above = part.parent; above !== undefined; above = above.parent) {
    if (above.contentType === "multipart/alternative") found = above;
  }
  return found;
}

/** Returns whether a part is an attached mail. */
export function isMail({ contentType, node }: Part): boolean {
  return (contentType || "").startsWith("message/") || /\.eml\W*$/i.test((node.filename || "").slice(-20));
}
