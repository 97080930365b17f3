/** Words in parameter names for text that people read. */
const PROSE = new Set(
  "body text content contents description desc message note notes comment comments title subject summary html markdown md paragraph paragraphs details caption abstract agenda minutes transcript draft reply answer feedback observation observations thought".split(
    " ",
  ),
);
/** Words that may stand beside them: `new_content`, `plainText`, `issue_body`. */
const BESIDE = new Set(
  "new old plain rich full short long initial page file issue event task item card post block".split(" "),
);
/**
 * Parameters of a single line: mails and calendars have these as header fields, where a second line would be another
 * field.
 */
const LINE = new Set(["subject", "title"]);
/** A single line too, unless the parameter's name says that it is a text. */
const SHORT_TEXT = "summary";
/** Words that are prose where nothing is lost by it, and a value of another kind elsewhere. */
const MORE_PROSE = new Set("mail email msg response data value".split(" "));
const MAX_KEY_CHARS = 60;

export function isProseKey(key: string): boolean {
  if (key.length > MAX_KEY_CHARS) return false;
  const words = wordsInKey(key);
  return words.some((word) => PROSE.has(word)) && words.every((word) => PROSE.has(word) || BESIDE.has(word));
}

/** Returns whether a parameter's name speaks of a text at all: `email_body`, `reply_msg`. */
export function mayBeProse(key: string): boolean {
  return wordsInKey(key).some((word) => PROSE.has(word) || MORE_PROSE.has(word));
}

/** Returns whether a parameter's value is a single line: `subject`, `event_title`, `summary`. */
export function isLineKey(key: string): boolean {
  const words = wordsInKey(key);
  if (words.some((word) => LINE.has(word))) return true;
  return words.includes(SHORT_TEXT) && words.every((word) => word === SHORT_TEXT || !PROSE.has(word));
}

/** Characters that some program takes for the end of a line or of a text. */
const LINE_BREAK = /(?!\t)[\p{Cc}\u2028\u2029]/gu;

/** Returns whether a text has anything behind its first line. */
export function breaksLine(text: string): boolean {
  return text.trim().search(LINE_BREAK) !== -1;
}

/** Returns the words of a parameter's name in lower case, however they are joined: `image_url`, `imageUrl`. */
export function wordsInKey(key: string): string[] {
  const words = key.slice(0, MAX_KEY_CHARS).split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/);
  return words.map((word) => word.toLowerCase());
}
