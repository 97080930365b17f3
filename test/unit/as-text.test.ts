import { expect, test } from "bun:test";
import { asText } from "../../src/trust/shown/as-code.ts";
import { written } from "../../src/mail/writing/written.ts";

test.each([
  "Unknown target @calender. If it is no target but a word, write \\@calender.",
  "Say *this* and _that_, a <b> and a [link](https://x.test/a_b), ~~no~~ & | # 1.",
  "1. not a list\n- nor this\n+ nor that\n# nor a heading\n> nor a quote",
  "Name one of: a_b, c*d*e, f&amp;g.",
])("%j reads in a notice as it stands", (sentence) => {
  const { text } = written(asText(sentence), { own: true });
  expect(text.replaceAll(/\s+/g, " ").trim()).toBe(sentence.replaceAll(/\s+/g, " ").trim());
});

test("code stays code", () => {
  expect(asText("Write `a_b` there.")).toBe("Write `a_b` there.");
});
