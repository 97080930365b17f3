/** The words that give a consent, and those that refuse one, in small letters. A Polish `tak` is no yes: it is thanks to Danes and Norwegians. */
export const YES = "yes ja oui sí si sì sim ano да はい 是".split(" ");
const NO = "no nein non não nao nee nej nie ne нет いいえ 否".split(" ");
/** More words than these, or other marks, are an ordinary mail. A letter in plain text shows its words between quotation marks. */
const ALONE = /^["'“„«]?(\p{L}{1,5})(?:[ ,:]{0,2}(\d{3} ?\d{3}))?["'”“»]?[.!。！．]?$/u;

/** What somebody says to a request for consent. */
export interface Consent {
  says: "yes" | "no";
  /** The number of the request, which its letter shows. */
  number: string | null;
}

/** What the first line of a text says to a request for consent; undefined where it is anything but one of these words, and a number. */
export function consentIn(text: string): Consent | undefined {
  const [first = ""] = text.trim().split("\n", 1);
  const [, said = "", number] = ALONE.exec(normalForm("NFKC", first.trim())) ?? [];
  const word = said.toLowerCase();
  const says = YES.includes(word) ? "yes" : NO.includes(word) ? "no" : undefined;
  return says && { says, number: number?.replace(" ", "") ?? null };
}
import { normalForm } from "../../lib/normal-form.ts";
