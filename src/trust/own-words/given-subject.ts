/** "Emailing: " or "Emailing - ". */
const LABEL = /^.{1,40}?(?:[:：]|\s[–-])\s/u;

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

/** Returns the letters and numbers of a text in small letters, by which texts are compared. */
export function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
