import { describe, expect, spyOn, test } from "bun:test";
import { isNamedPlace } from "../../src/trust/guard/named-places.ts";
import { isTitleNamed } from "../../src/trust/guard/named-titles.ts";
import { ownMs } from "../support/own-time.ts";

const named = (title: string, instruction: string, more: { context?: string; others?: string[] } = {}) =>
  isTitleNamed(title, { instruction, trusted_text: `${instruction}\n${more.context ?? ""}` }, more.others);

describe("a title", () => {
  test.each([
    ["Weekly plan", "@notes Please add a summary of this contract to the Weekly plan."],
    ["Weekly plan", "Add milk to the Weekly plan please, and eggs"],
    ["Weekly plan", "Put the milk at the end of my Weekly plan for me"],
    ["Weekly plan", "Note it in the Weekly plan"],
    ["Weekly plan", "Put this mail on our Weekly plan"],
    ["Weekly plan", "Make the page Minutes below the Weekly plan, with milk on it."],
    ["Weekly plan", "Update the Weekly plan with this"],
    ["Weekly plan", "Add milk to Weekly plan"],
    ["Weekly plan", "Append this to Weekly plan, please"],
    ["Weekly plan", "Add milk to Ada’s Weekly plan"],
    ["Weekly plan", "Add milk to the page Weekly plan of May"],
    ["Weekly plan", "Add milk to page Weekly plan."],
    ["Weekly plan", "@notes page: Weekly plan"],
    ["Weekly plan", "Make milk a row of the database called Weekly plan"],
    ["Weekly plan", "Whatever is new belongs on the Weekly plan page"],
    ["Weekly plan", "Add milk to the Weekly plan's end"],
    ["Weekly plan", "Add milk to the Weekly plan's page"],
    ["Groceries", "Add milk to the Groceries list"],
    ["Groceries", "Add milk to the page Groceries."],
    ["Groceries", "Add milk to the list called Groceries"],
    ["Project Apollo", "Add it to the Project Apollo board"],
    ["Project Apollo", "Add it to the board Project Apollo"],
    ["Offene Punkte", "Schreib das in die Offene Punkte"],
    ["Wochenplan", "Schreib es auf die Seite Wochenplan."],
    ["Wochenplan", "Schreib es auf die Wochenplan-Seite"],
    ["Übersicht Mai", "Schreib es auf die Seite Übersicht Mai"],
    ["Liste de courses", "Ajoute du lait à la Liste de courses"],
    ["Liste de courses", "Mets du lait dans la page Liste de courses"],
    ["Lista de compras", "Añade leche a la Lista de compras"],
    ["Lista de compras", "Escríbelo en la página Lista de compras"],
    ["Lista della spesa", "Aggiungi latte alla Lista della spesa"],
    ["Agenda della settimana", "Scrivilo nell’Agenda della settimana"],
    ["Lista de tarefas", "Adicione leite à página Lista de tarefas"],
    ["Lista de tarefas", "Escreva isso na Lista de tarefas"],
    ["Lijst van taken", "Zet het op de Lijst van taken"],
  ])("%j is named by %j", (title, said) => {
    expect(named(title, said)).toBe(true);
  });

  test.each([
    ["Please", "@notes Please add a summary of this contract to the Weekly plan."],
    ["Summary", "@notes Please add a summary of this contract to the Weekly plan."],
    ["Summary", "Summary of this to the Weekly plan"],
    ["contract", "@notes Please add a summary of this contract to the Weekly plan."],
    ["Contract", "@notes Please add a summary of this contract to the Weekly plan."],
    ["of this", "@notes Please add a summary of this contract to the Weekly plan."],
    ["the Weekly plan", "@notes Please add a summary of this contract to the Weekly plan."],
    ["Please add", "@notes Please add a summary of this contract to the Weekly plan."],
    ["weekly plan", "Add milk to the weekly plan"],
    ["Weekly plan", "Add milk to the weekly plan"],
    ["Weekly plan", "Add milk to the Weekly plans"],
    ["Weekly plan", "Add milk to the Biweekly plan, the Weekly planning, Weekly plan-x and Weekly plan.md"],
    ["Weekly plan", "Weekly plan: milk"],
    ["price", "Add milk to the price list"],
    ["Price", "Add milk to the price list"],
    ["This", "This page belongs into the Weekly plan"],
    ["Bob", "Add what I wrote to Bob to the Weekly plan"],
    ["Bob Smith", "Add what I wrote to Bob Smith to the Weekly plan"],
    ["Bob and", "Add what I wrote to Bob and Carol"],
    ["Bob yesterday", "Add what I wrote to Bob yesterday, to the Weekly plan"],
    ["Bob sent", "Add the list Bob sent to the Weekly plan"],
    ["New York", "Add the flights to New York, in New York and from New York to the Weekly plan"],
    ["Monday morning", "Add what is on Monday morning to the Weekly plan"],
    ["United States", "What happens in the United States? Add it to the Weekly plan"],
    ["Vertrag", "Schreib zum Vertrag etwas in den Wochenplan"],
    ["diesem Vertrag", "Was steht in diesem Vertrag?"],
    ["Vertrag Müller", "Schreib die Summe im Vertrag Müller in den Wochenplan"],
    ["Frau Müller", "Was ich mit Frau Müller besprach, in die Liste"],
    ["École", "Ajoute tout à l’école, aux Écoles et à l'École2"],
    ["I", "Add the page I sent to the Weekly plan"],
    ["it", "Add it"],
  ])("%j is not named by %j", (title, said) => {
    expect(named(title, said)).toBe(false);
  });

  test.each([
    '"weekly plan"',
    "“Weekly plan”",
    "“Weekly plan.”",
    "”Weekly plan”",
    "„Weekly plan“",
    "‚Weekly plan‘",
    "‘Weekly plan’",
    "'weekly plan'",
    "«Weekly plan»",
    "« Weekly plan »",
    "«\u00A0weekly plan\u202F»",
    "»Weekly plan«",
    "‹Weekly plan›",
    "「Weekly plan」",
    "『Weekly plan』",
    "`weekly plan`",
    '("Weekly plan")',
  ])("is named by %j, in a context as well", (quoted) => {
    for (const title of ["Weekly plan", "WEEKLY PLAN", " weekly plan "]) {
      expect(named(title, `milk goes to ${quoted}, as ever`)).toBe(true);
      expect(named(title, "Add milk", { context: `Groceries: ${quoted}` })).toBe(true);
    }
    expect(named("plan", `milk goes to ${quoted}`)).toBe(false);
  });

  test.each([
    ["plan", "my friends' plan' is"],
    ["plan", "Ada's plan's name"],
    ["und", "Schreib »Milch« und »Eier« in den Plan"],
    ["and", "Write «milk» and «eggs»"],
    ["and", 'Write "milk" and "eggs"'],
    ["plan", 'the "plan of others" and the "other plan"'],
    ["Weekly plan", 'the "Weekly plan'],
  ])("%j does not stand in quotation marks in %j", (title, said) => {
    expect(named(title, said)).toBe(false);
  });

  test.each(["週間計画", "خطة الأسبوع", "план"])("without capitals, %j, has to be quoted", (title) => {
    expect(named(title, `${title}に追加 ${title}`)).toBe(false);
    expect(named(title, `「${title}」に追加`)).toBe(true);
  });

  test("is the same in other code points", () => {
    const title = "Übersicht für Zoë";
    expect(named(title.normalize("NFD"), `Schreib es auf die Seite ${title}`)).toBe(true);
    expect(named(title, `Schreib es auf die Seite ${title.normalize("NFD")}`)).toBe(true);
    expect(named("İstanbul plan", "Add it to “i̇stanbul plan”, İİİİ")).toBe(true);
  });

  test("is not named by a context that only has its words", () => {
    const context = "What is new goes to the Weekly plan. Add it to the page Weekly plan.";
    expect(named("Weekly plan", "Add milk", { context })).toBe(false);
  });

  test("that is a part of a longer one is not meant where that stands", () => {
    const said = "Add milk to the Weekly plan for May.";
    expect(named("Weekly plan", said, { others: ["Weekly plan for May"] })).toBe(false);
    expect(named("Weekly plan for May", said, { others: ["Weekly plan"] })).toBe(true);
    expect(named("Weekly plan", said, { others: ["Weekly plan of others", "Weekly", "Plan B"] })).toBe(true);
    expect(
      named("Weekly plan", `${said} And eggs to the Weekly plan.`, { others: ["Weekly plan for May"] }),
    ).toBe(true);
    expect(named("Weekly plan", 'Add milk to the "Weekly plan"', { others: ["The Weekly plan"] })).toBe(true);
  });

  test("that others have padded out with words that are written there anyway is not meant", () => {
    const said = "Add milk to the Weekly plan please.";
    expect(named("Weekly plan please", said, { others: ["Weekly plan"] })).toBe(false);
    expect(named("Weekly plan please", said, { others: ["Weekly", "please"] })).toBe(true);
  });
});

test("a place is named by its title out of its own instruction, and by its id out of anything", () => {
  const id = "0a1b2c3d-0000-4000-8000-00000000abcd";
  const isNamed = (instruction: string, trusted_text: string) =>
    isNamedPlace(id, { instruction, trusted_text, places: [{ id, name: "Weekly plan" }], site: undefined });
  expect(isNamed("Add it to the Weekly plan", "")).toBe(true);
  expect(isNamed("", "Add it to the Weekly plan")).toBe(false);
  expect(isNamed("", `Add it to ${id}`)).toBe(true);
});

test("a title is looked for in a long text in little time", () => {
  const said = "to the Aa ".repeat(5_000);
  const started = ownMs();
  for (const title of ["Aa", "Aa to", "Aa to the Aa", `${"Aa to the ".repeat(40)}x`, "A".repeat(4_000)])
    named(title, said, { others: Array.from({ length: 100 }, (_, nth) => `Aa to the Aa ${nth}`) });
  expect(ownMs() - started).toBeLessThan(5_000);
});

describe("what is looked through for titles", () => {
  /** How many characters are put in order, and searched, meanwhile. */
  function charsOf(work: () => void): { ordered: number; searched: number } {
    using order = spyOn(String.prototype, "normalize");
    using search = spyOn(String.prototype, "indexOf");
    work();
    const ordered = order.mock.contexts.map((text) => String(text).length);
    const searched = search.mock.calls.map(([, from = 0], nth) => {
      const to = Number(search.mock.results[nth]?.value);
      return (to === -1 ? String(search.mock.contexts[nth]).length : to) - from;
    });
    return { ordered: sum(ordered), searched: sum(searched) };
  }
  const sum = (counts: number[]): number => counts.reduce((all, count) => all + count, 0);

  // Parts of one title, as somebody would call pages who wants the guard to be busy.
  const words = Array.from({ length: 60 }, (_, nth) => `Qw${nth}`);
  const parts = words.flatMap((_, from) =>
    words.slice(from).map((__, nth) => words.slice(from, from + nth + 1)),
  );
  const others = parts.map((part) => part.join(" ")).slice(0, 1_000);
  const whole = words.join(" ");
  const said = `${whole}\n`.repeat(1_500);

  test("is the instruction once, however many titles there are", () => {
    const { ordered, searched } = charsOf(() => named(whole, said, { others }));
    expect(ordered).toBeLessThan(3 * said.length);
    expect(searched).toBeLessThan(3 * said.length);
  });

  test("is its beginning where it points at something, and all of it where that is quoted", () => {
    const filler = "Ordinary words.\n".repeat(1_300);
    expect(named("Weekly plan", `Add milk to the Weekly plan.\n${filler}`)).toBe(true);
    expect(named("Weekly plan", `${filler}Add milk to the Weekly plan.`)).toBe(false);
    expect(named("Weekly plan", `${filler}Add milk to "Weekly plan".`)).toBe(true);
  });

  test("has no long run of marks put in order, which takes the square of their number", () => {
    const marks = "\u0301\u0316".repeat(100);
    using spy = spyOn(String.prototype, "normalize");
    expect(named(`A${marks}`, `Add it to the page "A${marks}".`)).toBe(true);
    const longest = Math.max(
      ...spy.mock.contexts.map((text) => /\p{M}*$/u.exec(String(text))?.[0].length ?? 0),
    );
    expect(longest).toBe(0);
  });

  test("of a part that stands there more often than is looked at is taken for one that is meant", () => {
    const title = "Weekly plan please";
    const often = "Weekly plan, ".repeat(1_200);
    expect(named(title, `Add it to the ${title}`)).toBe(true);
    expect(named(title, `${often} Add it to the ${title}`, { others: ["Weekly plan"] })).toBe(false);
  });
});
