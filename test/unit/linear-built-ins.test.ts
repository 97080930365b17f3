import { expect, test } from "bun:test";
import { consentIn } from "../../src/trust/own-words/consent.ts";
import { headWithoutSecrets, hideSecrets } from "../../src/ai/mcp-secrets.ts";
import { normalForm } from "../../src/lib/normal-form.ts";
import { quote } from "../../src/lib/quote.ts";
import { replaceEach } from "../../src/lib/replace-each.ts";
import { asciiHost, urlOf } from "../../src/lib/web-address.ts";
import { ownMs } from "../support/own-time.ts";

const MARKS = "\u0301\u0316".repeat(200_000);
const CODED = "%CC%81%CC%96".repeat(100_000);
/** Found at once in a text of the same letters, but for the one in its middle. */
const TOKEN = `${"b".repeat(2_000)}c${"b".repeat(1_999)}`;
const LIKE_IT = "b".repeat(4_000_000);
/** Each begins as the text goes on, and none stands in it. */
const HEADERS = Array.from({ length: 20 }, (_, index) => `${"b".repeat(1_900 + index)}c${"b".repeat(2_000)}`);

test.each<[string, () => unknown]>([
  [
    "marks on one letter, in each normal form",
    () => (["NFC", "NFKC", "NFD", "NFKD"] as const).map((form) => normalForm(form, `a${MARKS}`)),
  ],
  [
    "marks in a host",
    () => [urlOf(`https://a${MARKS}.example/x`), urlOf(`https://a${CODED}.example/`), asciiHost(`a${MARKS}`)],
  ],
  [
    "marks in the host of an address that is not too long",
    () => urlOf(` https://a${MARKS.slice(0, 3_900)}.example/`),
  ],
  ["marks in an answer to a letter", () => consentIn(`y${MARKS}es`)],
  ["a token like the text in what a tool server says", () => hideSecrets(LIKE_IT, [TOKEN, ...HEADERS])],
  [
    "the same in the beginning of a long text",
    () => headWithoutSecrets(LIKE_IT, [TOKEN, ...HEADERS], 200_000),
  ],
  ["the same in an error that is quoted", () => quote("b".repeat(8_000), [TOKEN, ...HEADERS])],
])("%s takes no time", (_what, work) => {
  const started = ownMs();
  work();
  expect(ownMs() - started).toBeLessThan(500);
});

test("a text is brought into its normal form, but for letters with more marks than any word has", () => {
  expect(normalForm("NFC", "Zu\u0308rich and e\u0301te\u0301")).toBe("Zürich and été");
  expect(normalForm("NFKD", "ﬁ①é")).toBe("fi1e\u0301");
  const many = "\u0301".repeat(31);
  expect(normalForm("NFC", `u\u0308${many}u\u0308`)).toBe(`u\u0308${many}ü`);
  expect(normalForm("NFC", `u${"\u0308".repeat(30)}`)).toBe(`ü${"\u0308".repeat(29)}`);
});

test("an address is read as it was, unless it is too long to be one", () => {
  expect(urlOf("https://bücher.example/ä")?.href).toBe("https://xn--bcher-kva.example/%C3%A4");
  expect(urlOf("/x", "https://a.example/y")?.href).toBe("https://a.example/x");
  expect(urlOf(`https://a.example/${"x".repeat(3_900)}`)).not.toBe(null);
  expect(urlOf(`https://a.example/${"x".repeat(4_000)}`)).toBe(null);
  expect(urlOf("no address")).toBe(null);
  expect(asciiHost("bücher.example")).toBe("xn--bcher-kva.example");
});

test("each of the texts sought is replaced, wherever it stands, and nothing else changes", () => {
  expect(replaceEach("äöü-key-ä key", ["key", "ö"], "*")).toBe("ä*ü-*-ä *");
  expect(replaceEach("aaaa", ["aa"], "b")).toBe("bb");
  expect(replaceEach("half \ud83d an emoji", ["none", ""], "x")).toBe("half \ud83d an emoji");
});

test("a cut leaves no part of a secret behind it, and as much of the text as there is room for", () => {
  const secret = "sk-0123456789abcdef";
  for (let at = 80; at <= 120; at += 1) {
    const shown = headWithoutSecrets(`${"x".repeat(at)}${secret}${"y".repeat(300)}`, [secret], 100);
    expect(shown).not.toContain("sk-");
    expect(shown).toStartWith("x".repeat(Math.min(at, 100)));
    expect(shown.length).toBeLessThanOrEqual(100);
  }
});
