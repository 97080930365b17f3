const MAX_READ_CHARS = 20_000;
const MAX_INSTRUCTION_CHARS = 500;
const MAX_SENTENCE_CHARS = 300;
const MIN_SENTENCE_WORDS = 3;
const MAX_NAMES = 20;
const MAX_QUOTES = 4;
/** Weight of a word of the instruction, relative to the content's own frequent words. */
const INSTRUCTION_WEIGHT = 3;
const OPENING_BONUS = 0.5;

const COMMON_WORDS = new Set(
  (
    "a about after all also an and any are as at be been before but by can could did do does for from had has have he " +
    "her here him his how i if in into is it its just may me more most my no not of on one only or other our out over " +
    "please she should so some such than that the their them then there these they this those to too up us very was we " +
    "were what when where which who will with would you your"
  ).split(" "),
);

/** What the demo model gets of a message. */
export interface DemoBrief {
  instruction: string;
  /** Untrusted text, which is quoted and never followed. */
  content: string;
  /** File names. */
  attachments: string[];
  /** Titles. */
  contexts: string[];
}

/** Returns the answer of the built-in model: no AI, no network, the same text for the same brief. */
export function demoAnswer(brief: DemoBrief): string {
  const quotes = relevantSentences(brief);
  return [
    "**This is the built-in demo model. It is not an AI:** it shows what it was given and picks sentences by counting words. Connect a model on the page “Connections” to have the work done.",
    `**Instruction:** ${clip(brief.instruction, MAX_INSTRUCTION_CHARS) || "(none)"}`,
    `**Contexts:** ${names(brief.contexts)}`,
    `**Attachments:** ${names(brief.attachments)}`,
    quotes.length === 0
      ? "**Content:** (nothing to quote)"
      : `**From the content**:\n\n${quotes.map((quote) => `> ${quote}`).join("\n>\n")}`,
  ].join("\n\n");
}

/** Returns the sentences with the highest scores, in the order of the text. */
function relevantSentences(brief: DemoBrief): string[] {
  const sentences = sentencesOf(brief.content);
  const asked = new Set(tellingWords(brief.instruction.slice(0, MAX_READ_CHARS)));
  const counts = countWords(sentences);
  return sentences
    .map((sentence, index) => ({ sentence, index, score: score(sentence, index, { asked, counts }) }))
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, Math.min(MAX_QUOTES, Math.ceil(sentences.length / 2)))
    .sort((a, b) => a.index - b.index)
    .map(({ sentence }) => clip(sentence, MAX_SENTENCE_CHARS));
}

function sentencesOf(content: string): string[] {
  const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
  const sentences = content
    .slice(0, MAX_READ_CHARS)
    // Header lines of the mail are no part of an answer.
    .replace(/^From: .*\nSubject: .*(?:\n(?:Date|To|Cc): .*){0,3}$/m, "")
    .replace(/^From: .*(?:\n(?:Date|To|Cc): .*){0,3}$/, "")
    .split(/\n{2,}/)
    .flatMap((paragraph) =>
      Array.from(segmenter.segment(paragraph.replace(/\s+/g, " ")), (part) => part.segment.trim()),
    );
  return [...new Set(sentences)].filter((sentence) => wordsIn(sentence).length >= MIN_SENTENCE_WORDS);
}

function score(
  sentence: string,
  index: number,
  text: { asked: Set<string>; counts: Map<string, number> },
): number {
  const words = new Set(tellingWords(sentence));
  let sum = index === 0 ? OPENING_BONUS : 0;
  for (const word of words) {
    sum += Math.log2(text.counts.get(word) ?? 1) + (text.asked.has(word) ? INSTRUCTION_WEIGHT : 0);
  }
  // The square root keeps long sentences from winning by length alone.
  return sum / Math.sqrt(words.size + 1);
}

function countWords(sentences: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of sentences.flatMap(tellingWords)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

function tellingWords(text: string): string[] {
  return wordsIn(text).filter((word) => !COMMON_WORDS.has(word));
}

function wordsIn(text: string): string[] {
  return (
    text
      .slice(0, MAX_READ_CHARS)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

function names(list: string[]): string {
  const shown = list.slice(0, MAX_NAMES).map((name) => clip(name, MAX_SENTENCE_CHARS));
  const more = list.length > MAX_NAMES ? [`and ${list.length - MAX_NAMES} more`] : [];
  return [...shown, ...more].join(", ") || "(none)";
}

function clip(text: string, limit: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}
