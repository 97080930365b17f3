/** The words that give a consent, and those that refuse one, in small letters. */
const YES = "yes ja oui sí si sì sim tak ano да はい 是".split(" ");
const NO = "no nein non não nao nee nej nie ne нет いいえ 否".split(" ");
/** More words than these, or other marks, are an ordinary mail. */
const ALONE = /^(\p{L}{1,5})[.!]?$/u;

/** What the first line of a text says to a request for consent; undefined where it is anything but one of these words. */
export function consentIn(text: string): "yes" | "no" | undefined {
  const [first = ""] = text.trim().split("\n", 1);
  const word = ALONE.exec(first.trim().normalize("NFC"))?.[1]?.toLowerCase() ?? "";
  if (YES.includes(word)) return "yes";
  return NO.includes(word) ? "no" : undefined;
}

/** Whether a text has a word that gives a consent anywhere: whoever says it may have it written. */
export function holdsConsent(text: string): boolean {
  const words =
    text
      .normalize("NFC")
      .toLowerCase()
      .match(/\p{L}+/gu) ?? [];
  return words.some((word) => YES.includes(word));
}
