/**
 * The marks between which models write their thinking into the answer, where no parser of the server takes it out:
 * most (DeepSeek R1, Qwen, GLM), then what fine-tuned ones and prompts use, Seed-OSS, Magistral, Kimi-VL, OpenThinker,
 * Gemma and gpt-oss.
 */
const MARKS: readonly (readonly [string, string])[] = [
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["<thought>", "</thought>"],
  ["<reasoning>", "</reasoning>"],
  ["<seed:think>", "</seed:think>"],
  ["[THINK]", "[/THINK]"],
  ["◁think▷", "◁/think▷"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|channel>thought", "<channel|>"],
  ["<|channel|>analysis<|message|>", "<|channel|>final<|message|>"],
];
const SPACE = /\s/;

/**
 * Returns the answer without the thinking in front of it; empty where there is only thinking. `shown` is what the model
 * was given: a closing mark without an opening one that stands there too may be quoted, and then nothing is cut.
 */
export function withoutThinking(text: string, shown: readonly { content: string }[]): string {
  let at = afterSpace(text, 0);
  let from = 0;
  for (let marks = marksAt(text, at); marks !== undefined; marks = marksAt(text, at)) {
    const end = text.indexOf(marks[1], at + marks[0].length);
    if (end < 0) return "";
    from = end + marks[1].length;
    at = afterSpace(text, from);
  }
  if (from === 0) from = afterUnopened(text, shown);
  return from === 0 ? text : text.slice(afterSpace(text, from));
}

function marksAt(text: string, at: number) {
  return MARKS.find(([open]) => text.startsWith(open, at));
}

const END = "</think>";

/**
 * Returns the end of thinking whose opening mark the chat template wrote into the prompt; 0 where there is none. An
 * answer that is about such marks names the opening one before, or quotes the closing one. Where
 * the model was shown the mark nothing is left out: else whoever wrote it could have the answer cut.
 */
function afterUnopened(text: string, shown: readonly { content: string }[]): number {
  const end = text.indexOf(END);
  if (end < 0 || shown.some(({ content }) => content.includes(END))) return 0;
  const next = end + END.length;
  const thinking = text.slice(0, end);
  if (thinking.includes("<think>") || (thinking.split("```").length - 1) % 2 === 1) return 0;
  return isInWords(thinking.at(-1), text[next]) ? 0 : next;
}

function isInWords(before = "\n", after = "\n"): boolean {
  return " \t`'\"“‘«(<>".includes(before) || "`'\"”’».,;:!?)".includes(after);
}

function afterSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && SPACE.test(text.charAt(at))) at += 1;
  return at;
}
