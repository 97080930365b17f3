import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type Command, parseCommand, type Parsed, type ParseOptions } from "../../src/pipeline/command.ts";
import { ownMs } from "../support/own-time.ts";

const PLAIN = { target: null, options: {}, contexts: [], tags: [], macro: null, unknown: [] };

function parsed(text: string, options?: ParseOptions): Omit<Parsed, "raw"> {
  const { raw, ...rest } = parseCommand(text, options);
  expect(raw).toBe(text);
  return rest;
}

const TOKENS: [string, Partial<Command>][] = [
  ["@notes file this", { target: "notes", command: "file this" }],
  ["@mcp:calendar what is on?", { target: "mcp:calendar", command: "what is on?" }],
  ["@Codehost-A issues", { target: "codehost-a", command: "issues" }],
  ["ask @notes", { command: "ask @notes" }],
  ["$weekly of May", { macro: "weekly", command: "of May" }],
  ["@notes $weekly of May", { target: "notes", macro: "weekly", command: "of May" }],
  ["of May $weekly", { command: "of May $weekly" }],
  ["$a $b", { macro: "a", command: "$b" }],
  ["sum --format=json up", { options: { format: "json" }, command: "sum up" }],
  ['sum --lang="pt BR" up', { options: { lang: "pt BR" }, command: "sum up" }],
  ['say --x="a \\"b\\" \\\\c"', { options: { x: 'a "b" \\c' }, command: "say" }],
  ["go --dry-run", { options: { "dry-run": true }, command: "go" }],
  ["go --no-reply --reply", { options: { reply: true }, command: "go" }],
  ["go --no-reply", { options: { reply: false }, command: "go" }],
  ["go --no-reply=1", { command: "go --no-reply=1" }],
  ["--every=weekday 8:00\nSum up.", { options: { every: "weekday 8:00" }, command: "Sum up." }],
  ["--at=2026-12-24 17:30 call Ann", { options: { at: "2026-12-24 17:30" }, command: "call Ann" }],
  ["--at=friday  5pm\nCall Ann.", { options: { at: "friday  5pm" }, command: "Call Ann." }],
  ["--at=friday 8 questions", { options: { at: "friday" }, command: "8 questions" }],
  ["--at=friday 8:00x", { options: { at: "friday" }, command: "8:00x" }],
  ['--at="friday" 8:00', { options: { at: "friday" }, command: "8:00" }],
  ["--format=list 8:00", { options: { format: "list" }, command: "8:00" }],
  ["go --format=", { command: "go --format=" }],
  ["in +brand voice", { contexts: ["brand"], command: "in voice" }],
  ["in +brand, please", { contexts: ["brand"], command: "in , please" }],
  ["+a +b +a", { contexts: ["a", "b"], command: "" }],
  ["file #Q3 #team/ops-1 it", { tags: ["q3", "team/ops-1"], command: "file it" }],
  ["file #Übersicht", { tags: ["übersicht"], command: "file" }],
  ["--new @notes x", { options: { new: true }, command: "@notes x" }],
  ["line one\n#tag\nline two", { tags: ["tag"], command: "line one\n\nline two" }],
];

const TEXTS = [
  "write to a@b.c",
  "C++ or c+",
  "pay $5 and $",
  "see issue #12 and #",
  "1+1 is +2",
  "a -- b and ---",
  "x--flag",
  "https://x.example/#frag",
  "+Brand",
  "@ home",
  "--9",
  "+brand@example.com",
  "`+code --flag` stays",
  "``a ` +b`` stays",
  "```\n@notes --x\n```",
  "~~~\n+brand\n~~~\nand text",
  "```\n+never closed",
  "````\n```\n+brand\n````",
  "```\r\n+brand\r\n```\r\nand text",
];

describe("the command grammar", () => {
  test.each(TOKENS)("reads %p", (text, expected) => {
    expect(parsed(text)).toEqual({ ...PLAIN, command: "", ...expected });
  });

  test.each(TEXTS)("leaves %p as it is", (text) => {
    expect(parsed(text)).toEqual({ ...PLAIN, command: text });
  });

  test.each([
    ["\\@notes is a name", "@notes is a name"],
    ["\\+brand \\#tag \\$macro \\--flag", "+brand #tag $macro --flag"],
    ["a \\n b", "a \\n b"],
  ])("takes %p for the text %p", (text, command) => {
    expect(parsed(text)).toEqual({ ...PLAIN, command });
  });

  test("stops at a signature and at a quotation", () => {
    for (const stop of ["--", "-- ", "> quoted", ">"]) {
      const text = `do +a\n${stop}\n+b --flag #tag @x`;
      expect(parsed(text)).toEqual({ ...PLAIN, contexts: ["a"], command: text.replace("+a", "").trim() });
    }
  });

  test("reads on behind a block of code, whatever the ends of lines are", () => {
    for (const end of ["\n", "\r\n"]) {
      const text = ["```js", "+code", "```", "do --it", "-- ", "+b"].join(end);
      expect(parsed(text)).toMatchObject({ options: { it: true }, contexts: [] });
    }
    expect(parsed("```a``` --it\nup")).toMatchObject({ options: { it: true } });
  });

  test("cuts no token in two where it stops reading", () => {
    const text = `${"word ".repeat(3_998)}go +brand-voice --format=json`;
    for (let shift = 0; shift < 20; shift += 1) {
      const { contexts, options, command } = parsed("x".repeat(shift) + text);
      expect([[], ["brand-voice"]]).toContainEqual(contexts);
      expect([{}, { format: "json" }]).toContainEqual(options);
      if (contexts.length === 0) expect(command).toEndWith("go +brand-voice --format=json");
    }
  });

  test("undoes what mail programs make of flags, in mail only", () => {
    const text = "sum —format=“json” up –lang=de \u2014 and — no-flag";
    expect(parsed(text, { mail: true })).toEqual({
      ...PLAIN,
      options: { format: "json", lang: "de" },
      command: "sum up \u2014 and — no-flag",
    });
    expect(parsed(text)).toEqual({ ...PLAIN, command: text });
  });

  test("takes twenty flags, contexts and tags; more are text", () => {
    const many = (sigil: string) => Array.from({ length: 25 }, (_, index) => `${sigil}n${index}`).join(" ");
    const { options, contexts, tags, command } = parsed([many("--"), many("+"), many("#")].join(" "));
    expect([Object.keys(options).length, contexts.length, tags.length]).toEqual([20, 20, 20]);
    expect(command).toContain("--n24");
    expect(command).toContain("+n20");
  });

  test("leaves the names of what there is not in the text, and says which contexts they were", () => {
    const known = {
      isContext: (slug: string) => slug === "brand",
      isMacro: (slug: string) => slug === "weekly",
    };
    expect(parsed("$monthly in +brand +tone", known)).toEqual({
      ...PLAIN,
      contexts: ["brand"],
      unknown: ["$monthly", "+tone"],
      command: "$monthly in +tone",
    });
    expect(parsed("$weekly", known)).toEqual({ ...PLAIN, macro: "weekly", command: "" });
  });

  test("knows no member that every object has", () => {
    const { options } = parsed("--constructor --to-string=x --hasOwnProperty");
    expect(Object.keys(options)).toEqual(["constructor", "to-string", "hasownproperty"]);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  test("of any text invents nothing, and is quick", () => {
    fc.assert(
      fc.property(anyText, fc.boolean(), (text, mail) => {
        const { command } = parsed(text, { mail });
        expect(
          isPartOf(command, mail ? text.replaceAll(/[“”„]/g, '"').replaceAll(/[–—]/g, "--") : text, mail),
        ).toBe(true);
      }),
    );
    for (const unit of [
      "`",
      "``` ",
      "+a ",
      "\\--",
      '--a="',
      "@",
      "~~~\n",
      "$a ",
      "—a=“",
      " ",
      "a ",
      "~",
      "+ ",
    ]) {
      const began = ownMs();
      parseCommand(unit.repeat(1_000_000 / unit.length), { mail: true });
      expect(ownMs() - began).toBeLessThan(100);
    }
  });

  test("an escaped text is text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const plain = text.replaceAll(/[`~\\>]/g, "");
        if (/^--[ \t]*$/m.test(plain)) return;
        const escaped = plain.replaceAll(/(^|\s)(@|\+|#|\$|--)/g, "$1\\$2");
        expect(parsed(escaped)).toEqual({ ...PLAIN, command: plain.trim() });
      }),
    );
  });

  test("what is put together comes apart again", () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,10}$/);
    const some = fc.uniqueArray(word, { maxLength: 5 });
    const parts = fc.record({
      target: fc.option(word),
      flags: some,
      contexts: some,
      tags: some,
      command: word,
    });
    fc.assert(
      fc.property(parts, ({ target, flags, contexts, tags, command }) => {
        const text = [
          ...(target === null ? [] : [`@${target}`]),
          ...flags.map((name) => `--${name}="a b"`),
          ...contexts.map((slug) => `+${slug}`),
          ...tags.map((tag) => `#${tag}`),
          command,
        ].join(" ");
        const options = Object.fromEntries(
          flags.filter((name) => !name.startsWith("no-")).map((name) => [name, "a b"]),
        );
        if (flags.some((name) => name.startsWith("no-"))) return;
        expect(parsed(text)).toEqual({ ...PLAIN, target, options, contexts, tags, command });
      }),
    );
  });
});

const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "@",
        "+",
        "#",
        "$",
        "--",
        "\\",
        "`",
        "```",
        "~~~",
        "\n",
        " ",
        '"',
        "=",
        ">",
        "—",
        "“",
        "no-",
        "a",
        "Z9",
      ),
      fc.string({ unit: "grapheme", maxLength: 5 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(""));

/** Whether every character of `part` stands in `whole`, in this order. */
function isPartOf(part: string, whole: string, mail: boolean): boolean {
  let at = 0;
  for (const char of mail ? part.replaceAll(/[“”„]/g, '"').replaceAll(/[–—]/g, "--") : part) {
    at = whole.indexOf(char, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
