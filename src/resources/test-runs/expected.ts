import { AppError, invalid, messageOf } from "../../errors.ts";
import { parseJson } from "../../lib/foreign-json.ts";
import { wholeCheckBy } from "../../lib/json-schema.ts";
import { normalForm } from "../../lib/normal-form.ts";
import { headOf } from "../../lib/text-length.ts";

/** What the answer to a message should be. */
export type Expected = { equals: string } | { contains: string } | { schema: Record<string, unknown> };

/** As it comes in, with any of its members. */
export interface GivenExpected {
  equals?: string;
  contains?: string;
  schema?: Record<string, unknown>;
}

const MAX_EXPECTED_CHARS = 20_000;
const MAX_QUOTED_CHARS = 80;
/** How much of what is the same is quoted before a difference. */
const BEFORE_CHARS = 20;
const MAX_FAULT_CHARS = 300;
const PATH = "body.expected";

/** Checks an expectation before it is stored: one that could not be checked later would pass whatever comes. */
export async function checkedExpected({ equals, contains, schema }: GivenExpected): Promise<Expected> {
  const given: (Expected | null)[] = [
    equals === undefined ? null : { equals },
    contains === undefined ? null : { contains },
    schema === undefined ? null : { schema },
  ];
  const [only, other] = given.filter((one) => one !== null);
  if (only === undefined || other !== undefined)
    throw invalid(PATH, "one_of", "Say one of `equals`, `contains` and `schema`, and only one.");
  if (JSON.stringify(only).length > MAX_EXPECTED_CHARS)
    throw invalid(
      PATH,
      "too_long",
      `At most ${MAX_EXPECTED_CHARS.toLocaleString("en")} characters are kept of what is expected. Take a part of it, with \`contains\`.`,
    );
  if ("schema" in only) await refuseUncheckable(only.schema);
  else if (plain("equals" in only ? only.equals : only.contains) === "")
    throw invalid(PATH, "empty", "Every answer would fit to no words at all. Write some.");
  return only;
}

async function refuseUncheckable(schema: Record<string, unknown>): Promise<void> {
  try {
    await wholeCheckBy(schema);
  } catch (error) {
    const why = headOf(messageOf(error), MAX_FAULT_CHARS);
    throw new AppError("validation_error", `An answer cannot be checked by this schema: ${why}.`, {
      fix: "Leave that out, or write it otherwise: `anyOf` in place of `oneOf`, `enum` in place of a pattern, and few references.",
      faults: [{ path: `${PATH}.schema`, code: "schema", message: `It cannot be used: ${why}.` }],
    });
  }
}

/**
 * Says what in an answer is otherwise than expected; null where it is as expected. Words are compared as people would: blanks and
 * line ends count as one blank each. `data`: the answer, without what stands around its only block of code.
 */
export async function differenceFrom(
  expected: Expected,
  { answer, data }: { answer: string; data: string },
): Promise<string | null> {
  if ("schema" in expected) return unfitting(expected.schema, data);
  const said = plain(answer);
  if ("contains" in expected)
    return said.includes(plain(expected.contains))
      ? null
      : `It does not contain “${shortened(plain(expected.contains))}”.`;
  const wanted = plain(expected.equals);
  return said === wanted ? null : firstDifference(wanted, said);
}

function plain(text: string): string {
  return normalForm("NFC", text).replaceAll(/\s+/g, " ").trim();
}

async function unfitting(schema: Record<string, unknown>, data: string): Promise<string | null> {
  const value = parseJson(data);
  if (value === undefined) return "It is not JSON, or has too many parts.";
  const fault = (await wholeCheckBy(schema))(value);
  return fault === null ? null : headOf(`It does not fit the schema: ${fault}.`, MAX_FAULT_CHARS);
}

function firstDifference(wanted: string, said: string): string {
  let at = 0;
  while (at < wanted.length && wanted[at] === said[at]) at += 1;
  const begin = Math.max(0, at - BEFORE_CHARS);
  const blank = begin === 0 ? -1 : wanted.slice(begin, at).indexOf(" ");
  const from = begin + blank + 1;
  const part = (text: string): string =>
    text.length <= from ? "nothing more" : `“${from > 0 ? "…" : ""}${shortened(text.slice(from))}”`;
  return `Expected ${part(wanted)}, but it says ${part(said)}.`;
}

function shortened(text: string): string {
  const head = headOf(text, MAX_QUOTED_CHARS).toWellFormed();
  return head.length < text.length ? `${head}…` : head;
}
