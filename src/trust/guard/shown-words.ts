/** Signs without which HTML, and Markdown, is shown as it stands there. */
const OF_HTML = /[<&]/;
const OF_MARKDOWN = /[\\`*_[\]<&~!#]/;
/** What base64 and its like is made of. */
const PACKED = /^[A-Za-z0-9+/=_-]{1000,}$/;
/** More signs in a row than words have that are parted by others. */
const MAX_IN_WORD = 12;
/** The beginning of a mail whose words may be others than those that stand there: a field of a header (RFC 5322 §2.2), one of which says how. */
const MAIL = /^\s*(?:from [^\n]*\n\s*)?[!-9;-~]+[ \t\r]*:/i;
const ENCODED = /^[ \t]*content-/im;

/** Whether a text is a file in base64 and its like, which no program shows as words. */
export function isPacked(text: string): boolean {
  return PACKED.test(text) && text.length > MAX_IN_WORD * text.split(/[^A-Za-z0-9]/).length;
}

/** Returns the words of texts as this server reads them if they come as the HTML of a mail, and once Markdown was made to such. */
export async function wordsOnceShown(texts: string[]): Promise<{ html: string[]; markdown: string[] }> {
  const shown = texts.filter((text) => !isPacked(text));
  const pages = shown.filter((text) => OF_HTML.test(text));
  const marked = shown.filter(mayBeMarkdown);
  if (pages.length + marked.length === 0) return { html: [], markdown: [] };
  // Its parser would stay in memory from the start.
  const { markdownAsHtml } = await import("../../mail/writing/markdown.ts");
  return {
    html: (await Promise.all(pages.map(readingsOfHtml))).flat(),
    markdown: (await Promise.all(marked.map((text) => readingsOfHtml(markdownAsHtml(text))))).flat(),
  };
}

/** Returns all words of a text that comes as the HTML of a mail, and those that would be its sender's own: what is struck out is not. */
export async function readingsOfHtml(html: string): Promise<string[]> {
  const { wordsInHtml } = await import("../own-words/html-words.ts");
  const { splitNewText } = await import("../own-words/reply-text.ts");
  if (!OF_HTML.test(html)) return [html];
  const own = [true, false].map((fresh) => splitNewText({ html }, { fresh }).new_text);
  return [...new Set([wordsInHtml(html), ...own])];
}

/** Whether a program that takes a text for Markdown may show other words than those that stand there. */
export function mayBeMarkdown(text: string): boolean {
  return OF_MARKDOWN.test(text);
}

/** Whether a text may be a mail whose words only a program that reads mail knows. */
export function mayBeMail(text: string): boolean {
  return MAIL.test(text) && ENCODED.test(text);
}

/** Returns the words of a mail as this server reads them if it comes. */
export async function wordsOfMail(text: string): Promise<string[]> {
  const { readMail } = await import("../../mail/reading/parse-mail.ts");
  const { allText } = await import("../../mail/reading/mail-text.ts");
  // oxlint-disable-next-line no-control-regex -- the bytes of Latin-1.
  const sets: BufferEncoding[] = /^[\0-\xff]*$/.test(text) ? ["utf8", "latin1"] : ["utf8"];
  const bytes = sets.map((set) => Buffer.from(text.trimStart(), set));
  const different = bytes.filter((one, nth) => nth === 0 || !one.equals(bytes[0] ?? one));
  const read = await Promise.all(different.map((one) => readMail(one)));
  return read.flatMap((outcome) =>
    outcome.ok ? [outcome.mail.subject, outcome.mail.new_text, allText(outcome.mail)] : [outcome.text],
  );
}
