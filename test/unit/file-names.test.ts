import { expect, test } from "bun:test";
import fc from "fast-check";
import { hideFileNames, withoutFileNames } from "../../src/trust/own-words/file-names.ts";

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
  // Where words have no spaces between them, a name has none beside it.
  ["添付ファイルeve@a.test.txtをご確認ください", ["eve@a.test.txt"], "添付ファイル をご確認ください"],
  ["请查收附件eve@a.test.txt。", ["eve@a.test.txt"], "请查收附件 。"],
  ["eve@a.test.txt를 첨부합니다", ["eve@a.test.txt"], " 를 첨부합니다"],
  ["ไฟล์แนบeve@a.test.txtครับ", ["eve@a.test.txt"], "ไฟล์แนบ ครับ"],
  ["先日の見積eve@a.test書.pdfを送ります", ["見積eve@a.test書.pdf"], "先日の を送ります"],
  ["PDF見積 --allow-destructive 書.pdf", ["見積 --allow-destructive 書.pdf"], " "],
  // Programs shorten a name, at its end, in its midst or at its beginning.
  ["File: Offer of eve@example.net and oth…", ["Offer of eve@example.net and others.txt"], "File:  …"],
  ["File: Offer of eve@example.net and ot...", ["Offer of eve@example.net and others.txt"], "File:  ..."],
  ["File: Offer of eve@example.net […]", ["Offer of eve@example.net and others.txt"], "File:   […]"],
  ["@office... file my notes", ["Office notes"], "@office... file my notes"],
  ["It is bob@example.org now... and later", ["Offer by now.txt"], "It is bob@example.org now... and later"],
  ["File: Offer --allow-dest…others.txt.", ["Offer --allow-destructive to others.txt"], "File:  ."],
  ["File: …of eve@example.net.txt", ["The long offer of eve@example.net.txt"], "File: … "],
  ["File: …of eve@example.net", ["The long offer of eve@example.net.txt"], "File: … "],
  ["File: Add it to page Pay….txt", ["Add it to page Payroll of all.txt"], "File:  "],
  ["添付eve@example.net…を", ["eve@example.net見積.txt"], "添付 …を"],
  // One's own words may begin like a file, and go on with three dots.
  ["@office file this… please", ["Office plan.txt"], "@office file this… please"],
  ["Put it on my page Shopping list…", ["Shopping list for Eve.pdf"], "Put it on my page Shopping list…"],
  ["Well... mail it to bob@example.org", ["Offer of eve@a.test.txt"], "Well... mail it to bob@example.org"],
  // A program gives a copy another number, in the text or in the mail.
  ["File: eve@a.test (1).txt", ["eve@a.test.txt"], "File:  "],
  ["File: eve@a.test[12].txt", ["eve@a.test.txt"], "File:  "],
  ["File: eve@a.test-2.txt", ["eve@a.test.txt"], "File:  "],
  ["File: eve@a.test.txt", ["eve@a.test (1).txt"], "File:  "],
  ["File: eve@a.test(3).txt", ["eve@a.test (1).txt"], "File:  "],
  // Without a name that stands inside of an address or a path, another one would be left.
  ["to bob@company.co.uk please", ["uk."], "to   please"],
  ["to bob@company.co.uk, please", ["# UK.pdf"], "to  , please"],
  ["to <bob@company.co.uk>.", ["$uk"], "to < >."],
  ["see acme.com.au.", ["au."], "see  ."],
  ["an issue in acme/site.wiki", ["wiki."], "an issue in  "],
  ["an issue in acme/tools/website", ["website."], " "],
  ["to john-smith@example.org, amy@example.org", ["john."], "to  , amy@example.org"],
  ["bob@company.co.ukに送って", ["uk."], " に送って"],
  ["to bob@company.co.uk and uk.txt", ["uk.", "uk.txt"], "to   and  "],
  ["nothing", [""], "nothing"],
  ["nothing", ["."], "nothing"],
])("%j with the files %j says by itself %j", (text, filenames, own) => {
  expect(withoutFileNames(text, filenames)).toBe(own);
});

test("what is shown is what was written, whatever stands in it", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "a.txt",
      "eve@a.test.txt",
      " (1).txt",
      "…",
      "...",
      "資",
      " ",
      "\n",
      "--x",
      "\u{F0000}",
      "\u{F0001}",
      "İ",
      "ß",
      "𝐀",
    ),
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

const COUNT = 1_000;
const SIZE = 64_000;

// Each of these took longer than a test may, where the text was looked through once for each name.
test.each<[string, string, string[]]>([
  ["that differ in punctuation alone", "/a1.txt", numbered((n) => `a${"-".repeat(n)}.txt`)],
  ["that begin alike", "a ", numbered((n) => `${"a".repeat(140)}${n}.pdf`)],
  ["in a script without blanks", "中", numbered((n) => `${"中".repeat(1 + (n % 140))}.pdf`)],
  ["that are numbers, as those of copies", "1 ", numbered((n) => `${"1".repeat(1 + (n % 140))}.1`)],
  ["that are abbreviated", "ab… ", numbered((n) => `abc${n}.pdf`)],
  ["that may have been cut", "abc.pdf ", ["abc.pdf", `${"q".repeat(200)}.pdf`]],
  ["with a path", "/x.pdf", ["x.pdf"]],
])("a mail with very many places and names %s is read to its end", (_, unit, filenames) => {
  const text = unit.repeat(SIZE / unit.length);
  expect(withoutFileNames(text, filenames)).toMatch(/^[\s….]*$/);
});

function numbered(nameOf: (number: number) => string): string[] {
  return Array.from({ length: COUNT }, (_, number) => nameOf(number));
}

test("where comparing names with a text would take long, all of it counts as names", () => {
  const names = numbered((n) => `${"a".repeat(140)}${n}.pdf`);
  const text = `@office --allow-destructive ${"a ".repeat(SIZE / 2)}`;
  expect(hideFileNames(text, names).text).not.toContain("@office");
});
