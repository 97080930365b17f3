import { expect, test } from "bun:test";
import fc from "fast-check";
import { hideFileNames, withoutFileNames } from "../../src/trust/own-words/given-subject.ts";

test.each([
  ["Compare report.pdf with plan v2.docx.", ["report.pdf", "plan v2.docx"], "Compare   with  ."],
  ["(See attached file: eve@example.net.txt)", ["eve@example.net.txt"], "(See attached file:  )"],
  // Mail programs break lines, and write other signs in place of some.
  ["Attached: Offer\nof eve@example.net.txt", ["Offer of eve@example.net.txt"], "Attached:  "],
  ['as "Trip/eve@a.test.txt" file', ["Trip_eve@a.test.txt"], 'as " " file'],
  [
    "The chat Trip --allow-destructive fun is below",
    ["Trip --allow-destructive fun.txt"],
    "The chat   is below",
  ],
  // Words of one's own that a file happens to be called by stay one's own.
  ["Put it on my page Shopping list", ["Shopping list.pdf"], "Put it on my page Shopping list"],
  ["@office file this", ["office.txt"], "@office file this"],
  ["@office file this", ["office"], "@office file this"],
  [
    "The chat “Offer –allow-destructive now” is below",
    ["Offer –allow-destructive now.txt"],
    "The chat “ ” is below",
  ],
  // Names of macOS are written in other characters than the text.
  ["See Café eve@a.test.txt", ["Cafe\u0301 eve@a.test.txt"], "See  "],
  ["as Trip/eve@a.test +vault/x.txt here", ["x.txt"], "  here"],
  [`The file ${"a b ".repeat(70)}+vault.txt is here`, ["a b ".repeat(70).slice(0, 250)], "The file  "],
  ["the repository acme/site", ["site.zip"], "the repository acme/site"],
  ["mynotes.txt and notes.txt", ["notes.txt"], "mynotes.txt and  "],
  ["nothing", [""], "nothing"],
  ["nothing", ["."], "nothing"],
])("%j with the files %j says by itself %j", (text, filenames, own) => {
  expect(withoutFileNames(text, filenames)).toBe(own);
});

test("what is shown is what was written, whatever stands in it", () => {
  const piece = fc.oneof(
    fc.constantFrom("a.txt", "eve@a.test.txt", " ", "\n", "--x", "\u{F0000}", "\u{F0001}", "İ", "ß", "𝐀"),
    fc.string({ maxLength: 3 }),
  );
  const words = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(words, fc.array(words, { maxLength: 3 }), (text, filenames) => {
      const hidden = hideFileNames(text, filenames);
      expect(hidden.shown(hidden.text)).toBe(text);
    }),
    { numRuns: 5_000 },
  );
});
