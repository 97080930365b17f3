import { expect, test } from "bun:test";
import { folded, markedText, markOf, plainText, wordsIn } from "../../src/lib/split-words.ts";

const wordsOf = (text: string) => Array.from(wordsIn(text), ({ text: word }) => word);

test.each([
  ["Invoice no. 42 is don't", ["Invoice", "no", "42", "is", "don", "t"]],
  ["日本語", ["日本", "本語", "語"]],
  ["字", ["字"]],
  ["東京tower 2", ["東京", "京", "tower", "2"]],
  ["ราคา", ["รา", "าค", "คา", "า"]],
  ["한국어 말", ["한국어", "말"]],
  ["नमस्ते", ["नमस्ते"]],
  ["𠮷野家", ["𠮷野", "野家", "家"]],
  ["🎉 -- !", []],
])("%s has the words %p", (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});

test("says where each word stands", () => {
  const text = "a 日本語, Größe";
  for (const { text: word, from, to } of wordsIn(text)) expect(text.slice(from, to)).toBe(word);
});

test("a marked text can be read back, and each of its words begins with the mark", () => {
  const mark = markOf(7_001);
  for (const text of ["", " a, b!", "日本語abc字", "x\n\n字。字", "ราคา 20 บาท", "𠮷野家x", "🎉"]) {
    const marked = markedText(text, mark);
    expect(plainText(marked)).toBe(text);
    expect(marked.split(mark).length - 1).toBe(wordsOf(text).length);
  }
  expect(plainText(markedText("a\ue123b\u2064c\u2063d", mark))).toBe("a b c d");
  expect(new Set(Array.from({ length: 20_000 }, (_, number) => markOf(number))).size).toBe(20_000);
});

test("accents and upper case make no difference", () => {
  expect(folded("GRÖSSE")).toBe(folded("grosse"));
  expect(folded("Cafe\u0301")).toBe("cafe");
  expect(folded("ก็")).toBe("ก็");
});

test("a letter with very many marks is the letter, and takes no more time than its length", () => {
  const marks = "\u0301\u0323".repeat(500_000);
  expect(folded(`Cr${marks}ème`)).toBe("creme");
});
