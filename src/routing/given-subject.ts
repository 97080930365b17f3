import { isPublicName } from "../mail/domain-owner.ts";

/** A longer name is none. */
const MAX_HOST_CHARS = 300;
const WEB_ADDRESS = /^[<([{"']{0,3}(?:[a-z][a-z0-9+.-]{0,20}:\/\/|www\.)/i;
/** "Emailing: " or "Emailing - ". */
const LABEL = /^.{1,40}?(?:[:：]|\s[–-])\s/u;

/**
 * The addresses in a text that holds nothing else but the subject's own words: a page that a phone or a browser shared,
 * whose title and text are those of its author. Null where there is more, or no address.
 */
export function sharedPage(text: string, subject: string): string | null {
  const words = text.split(/\s+/).filter((word) => word !== "");
  const addresses = words.filter(isAddress);
  if (addresses.length === 0) return null;
  const others = lettersOf(words.filter((word) => !isAddress(word)).join(" "));
  return lettersOf(subject).includes(others) ? addresses.join("\n") : null;
}

function isAddress(word: string): boolean {
  if (WEB_ADDRESS.test(word)) return true;
  const host = /^[^/?#:@]+/.exec(word.slice(0, MAX_HOST_CHARS))?.[0] ?? "";
  return /\.\p{L}/u.test(host) && isPublicName(host);
}

/** Whether a subject is made of the names of the mail's files, as programs do that mail one. */
export function namesFiles(subject: string, filenames: readonly string[]): boolean {
  const names = filenames
    .flatMap((name) => [name, name.replace(/\.[^.]*$/, "")])
    .map(lettersOf)
    .filter((name) => name !== "")
    .sort((one, other) => other.length - one.length);
  return [subject, subject.replace(LABEL, "")].some((text) => {
    const letters = lettersOf(text);
    return letters !== "" && names.reduce((left, name) => left.replaceAll(name, ""), letters) === "";
  });
}

function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
