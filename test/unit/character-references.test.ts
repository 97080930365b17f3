import { describe, expect, test } from "bun:test";
import { asRead, withoutEntities } from "../../src/trust/guard/as-read.ts";

const WORD = "https://eve.example/p?q=77";
const written = (form: (code: number) => string): string =>
  Array.from(WORD, (char) => form(char.codePointAt(0) ?? 0)).join("");

describe("character references are read as browsers read them", () => {
  test.each([1, 7, 8, 500])("as numbers of %i digits, with a semicolon and without", (digits) => {
    const forms = [";", ""].flatMap((end) => [
      written((code) => `&#${String(code).padStart(digits, "0")}${end}`),
      written((code) => `&#x${code.toString(16).padStart(digits, "0")}${end}`),
      written((code) => `&#X${code.toString(16).toUpperCase().padStart(digits, "0")}${end}`),
    ]);
    // A digit behind a number without an end would belong to it; these forms have a `&` there.
    expect(forms.map(withoutEntities)).toEqual(forms.map(() => WORD));
    expect(forms.map(asRead)).toEqual(forms.map(() => WORD));
  });

  test("as any of the names that HTML has", () => {
    expect(withoutEntities("a&quest;b&equals;c&NewLine;d&Tab;e&lbrack;&ic;&af;&NoBreak;&colon;&sol;")).toBe(
      "a?b=c\nd\te[\u2063\u2061\u2060:/",
    );
    // Lenient programs read these without an end.
    expect(withoutEntities("of&shyfice a&PERIOD b &ltimg")).toBe("of\u00ADfice a. b <img");
  });

  test("and what stands in a query is none", () => {
    for (const query of ["?a=1&region=eu", "?a=1&copy=2", "?x&not=1&para=2", "AT&T", "a & b", "&unknown;"])
      expect(withoutEntities(query)).toBe(query);
  });
});
