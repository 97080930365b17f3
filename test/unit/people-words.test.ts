import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import ts from "typescript-5";
import { SCHEMA } from "../../src/config/schema.ts";
import { forPeople } from "../../src/errors.ts";
import { leftOutWords, REFUSALS } from "../../src/reasons.ts";
import openapi from "../golden/openapi.json";

const SRC = join(import.meta.dir, "../../src");

/** Sentences for programs and their authors, for whoever runs the server in a terminal, and words that are looked for. */
const NOT_SHOWN =
  /^(cli|config|db)\/|^http\/(docs-|openapi|error-catalogue|auth\.ts)|(^|[/-])(routes|shapes)\.ts$|^inbound\/raw-mail-signature|^lib\/(pagination|start-faults)|^operation\/doctor\/machine-checks|^mail\/reading\/program-marks|^trust\/own-words\/subject-mark|^resources\/recipes\/writing/;

/** Settings of the configuration are called by their names, as `smtp.domain`: there are no others for them. */
const SETTING = new RegExp(String.raw`\b(${Object.keys(SCHEMA).join("|")})\.[\w….]+`, "g");
const ROUTE = /\b(GET|POST|PATCH|PUT|DELETE) /;
const MEMBER = /[a-z]_[a-z]/;
const MEMBERS = new Set(JSON.stringify(openapi).match(/"[a-z]\w*"(?=:)/g));

test("people are told of no name that only programs know", () => {
  const shown = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(SRC)]
    .filter((file) => !NOT_SHOWN.test(file))
    .flatMap((file) => sentencesIn(file).map((sentence) => ({ file, sentence })));
  expect(shown.length).toBeGreaterThan(2_000);
  const for_programs = shown.filter(({ sentence }) => isForPrograms(forPeople(sentence)));
  expect(for_programs).toEqual([]);
});

test("a sentence for both keeps what people read of it", () => {
  expect(forPeople("Wait, or cancel it first (`POST /messages/{message_id}/cancel`).")).toBe(
    "Wait, or cancel it first.",
  );
  expect(forPeople("It needs an address (`base_url`), such as https://tools.example.com (its own).")).toBe(
    "It needs an address, such as https://tools.example.com (its own).",
  );
});

test("why mail was not taken or left out is said in a sentence", () => {
  const left_out = ["auto_reply", "bulk", "mailing_list", "no_reply_sender", "loop_cap", "junk"].map(
    leftOutWords,
  );
  for (const words of [...left_out, ...Object.values(REFUSALS).map(({ shown }) => shown)])
    expect(words).toMatch(/^[A-Z][^_.]+\.?( Turn on [^_.]+\.)?$/);
});

function isForPrograms(sentence: string): boolean {
  const words = sentence.replaceAll(SETTING, "").replaceAll(/https:\S+/g, "");
  const dotted = [...words.matchAll(/\b([a-z]+)\.([a-z_]+)\b/g)];
  const is_path = dotted.some(([, of, name]) => MEMBERS.has(`"${of}"`) && MEMBERS.has(`"${name}"`));
  return ROUTE.test(words) || MEMBER.test(words) || is_path;
}

/** Texts of a source file that have words between blanks; what is put into them is "…". */
function sentencesIn(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(join(SRC, file), "utf8"), ts.ScriptTarget.Latest);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    // Descriptions are those of the interface; templates with a tag are SQL.
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === "description")
      return;
    if (ts.isTaggedTemplateExpression(node)) return;
    const text = textOf(node);
    if (text !== undefined && / [a-z]+ /.test(text) && !/^\S+ as \S+$/.test(text)) found.push(text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node) || ts.isJsxText(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("");
}
