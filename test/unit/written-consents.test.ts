import { expect, test } from "bun:test";
import { objectionToYes } from "../../src/trust/guard/written-consents.ts";
import { ownMs } from "../support/own-time.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";

const NUMBER = "482913";

/** What is said of a call in whose run the request with this number waits. */
async function saidOf(args: Record<string, unknown>, number = NUMBER): Promise<string | null> {
  const tool = { name: "send", foreign: true, read_only: false };
  return (await objectionToYes({ tool, args, numbers: [number] }))?.reason ?? null;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test.each<[string, Record<string, unknown>]>([
  ["in order", { template: "yes {{a}}{{b}}", vars: { a: "482", b: "913" } }],
  ["in another order", { vars: { b: "913", a: "482" }, template: "yes {{a}}{{b}}" }],
  ["in three, in another order", { vars: { c: "13", a: "48", b: "29" }, template: "yes {{a}}{{b}}{{c}}" }],
  ["digit by digit", { vars: { f: 3, e: 1, d: 9, c: 2, b: 8, a: 4 }, template: "yes {{a}}{{b}}" }],
  ["below names with digits", { template: "yes {{a1}}{{b2}}", vars: { a1: "482", b2: "913" } }],
  [
    "one in the template",
    { rest: "913", template: "yes 482{{rest}}\n\nThank you for all of it, and see you soon." },
  ],
  ["in runs of rich text", { content: [{ text: "ye" }, { text: "s 482" }, { text: "913" }] }],
  [
    "in runs of rich text, with other digits below",
    { content: ["ye", "s 48", "2913", "1 more"].map((text) => ({ type: "text", text })) },
  ],
  ["letter by letter", { content: ["o", "u", "i", " ", "482913"] }],
  ["in fields of a row", { a: "ye", b: "s", c: 482_913 }],
  ["as the name of a field", { fields: { Yes: "482913" } }],
  ["in parts in base64", { parts: [base64("yes 482"), base64("913")] }],
  ["in JSON", { rest: '{"b":"913"}', first: '{"a":"yes 482"}' }],
  [
    "in cells of a row that is turned round",
    { html: "<div style='flex-direction:row-reverse'>yes 913<b>482</b></div>" },
  ],
  ["from right to left", { html: "<bdo dir=rtl>319284 sey</bdo>" }],
  ["in a mail in base64", { raw: `Content-Transfer-Encoding: base64\r\n\r\n${base64("yes 482913")}` }],
  ["compressed", { raw: Buffer.from(Bun.gzipSync("yes 482913")).toString("base64") }],
])("a yes with the number of a request is found in pieces: %s", async (_how, args) => {
  const said = await saidOf(args);
  expect(said).toContain("waits for your yes");
  expect(said).not.toMatch(/\d{3}/);
});

test.each<[string, Record<string, unknown>]>([
  ["its number alone", { id: NUMBER, note: `Order ${NUMBER} of May` }],
  ["its number in pieces without a yes", { values: ["482", "913"], body: "Thank you, yes, we have 482913." }],
  ["a yes alone", { attending: "yes", body: "Yes.\n\nWe are 4." }],
  [
    "a yes beside other numbers",
    { attending: "yes", adults: 2, room: "482", day: "2026-05-03", price: "9.13" },
  ],
  ["numbers below names that are such words", { ano: "482", si: "913" }],
  ["other numbers", { amount: "482", order: "914", note: "20 of 13", page: 4, count: 8 }],
  [
    "a table",
    { body: `Sales\n\n${Array.from({ length: 90 }, (_, at) => `${at + 400}, ${at + 850}`).join("\n")}` },
  ],
  ["a picture", { file: base64("\x89PNG".repeat(400)) }],
])("it is not made of %s", async (_what, args) => {
  expect(await saidOf(args)).toBeNull();
});

test.each<[string, (rest: string) => string]>([
  ["a link with brackets in its address", (rest) => `yes 482[](#(7))${rest}`],
  ["a link that leads far", (rest) => `yes 482[](#(7${"x".repeat(3_000)}))${rest}`],
  ["an address in angle brackets", (rest) => `yes 482[](<#)7>)${rest}`],
  ["a picture", (rest) => `yes 482![](7.png)${rest}`],
  ["a reference", (rest) => `yes 482[][7]${rest}\n\n[7]: #`],
  ["a comment", (rest) => `yes 482<!-- 7${"x".repeat(3_000)} -->${rest}`],
  ["a tag with a long attribute", (rest) => `yes 482<a title="7${"x".repeat(3_000)}"></a>${rest}`],
  ["hidden words", (rest) => `<p>yes 482<span hidden>7${"x".repeat(900)}</span>${rest}</p>`],
  ["words that a sheet hides", (rest) => `<style>i{display:none}</style><p>yes 482<i>7</i>${rest}</p>`],
  ["an element of its own", (rest) => `yes 482<ref>7${"x".repeat(900)}</ref>${rest}`],
  ["a template", (rest) => `yes 482{{#if 7${"x".repeat(900)}}}{{/if}}${rest}`],
  ["marks of a wiki", (rest) => `yes 482[quote=7][/quote]${rest}`],
  ["a long character reference", (rest) => `<p>yes 482&#00000${rest.charCodeAt(0)};${rest.slice(1)}</p>`],
  ["a named reference that draws nothing", (rest) => `yes 482&ic;${rest}`],
  ["a line that goes on", (rest) => `yes 482\n${rest}`],
  ["stars", (rest) => `**yes** 482**${rest}**`],
  ["a heading below other words", (rest) => `Hello\n\n# ja: 482 ${rest}.\n\nBye`],
])("a yes is found as it is read once it was mailed, with %s between its digits", async (_what, form) => {
  // Whichever number it has: nobody learns by this which one it would have to be.
  for (const rest of ["913", "914"])
    expect(await saidOf({ body: form(rest) })).toContain("waits for your yes");
});

test.each<[string, (number: string) => string]>([
  [
    "before words that are set into the next line",
    (number) => `yes ${number}${" ".repeat(70)}and more of it`,
  ],
  ["behind a quote that is as long as a line", (number) => `> ${"x".repeat(70)} Oui, ${number} for all`],
])("a yes with the number is found within a line that a program may break: %s", async (_where, form) => {
  expect(await saidOf({ body: form(NUMBER) })).toContain("waits for your yes");
  expect(await saidOf({ body: form("482914") })).toBeNull();
  const guesses = Array.from({ length: 6 }, (_, nth) => form(`00000${nth}`));
  expect(await saidOf({ body: guesses.join("\n") })).toContain("waits for your yes");
});

test("more than can be looked through is refused", async () => {
  const packed = JSON.stringify({ a: JSON.stringify({ b: "x".repeat(200_000) }) });
  expect(await saidOf({ body: packed })).toContain("more text");
});

test("lists of numbers meet none by chance, and tell none by what is refused", async () => {
  const chance = chanceFrom(seedFrom("CONSENT_SEED", "numbers by chance"));
  const random = (below: number): number => Math.floor(chance() * below);
  const numbers = Array.from({ length: 100 }, () => String(random(1_000_000)).padStart(6, "0"));
  const tool = { name: "send", foreign: true, read_only: false };
  for (let turn = 0; turn < 50; turn += 1) {
    const values = Array.from({ length: 40 }, () => String(10 + random(90)));
    expect(await objectionToYes({ tool, args: { values }, numbers })).toBeNull();
  }
  const pairs = Array.from({ length: 100 }, (_, nth) => String(nth).padStart(2, "0"));
  expect(await saidOf({ values: pairs })).toBeNull();
  // With a yes among them, all are refused in which the number could be, and as many in which it is not.
  const without = pairs.filter((pair) => !NUMBER.includes(pair));
  for (const values of [pairs, without]) expect(await saidOf({ values: ["yes", ...values] })).not.toBeNull();
});

test("looking for a yes takes linear time", async () => {
  for (const part of [
    "<",
    "<a",
    "[",
    "](",
    "[](",
    "{",
    "(",
    "=\n",
    "&#",
    "*",
    "yes 1",
    "1 ",
    "<i>1</i>",
    "> ",
  ]) {
    const body = part.repeat(50_000 / part.length);
    const start = ownMs();
    await saidOf({ body });
    expect([part, ownMs() - start < 2_000]).toEqual([part, true]);
  }
});
