import { invalid } from "../../errors.ts";
import { isLongerThan } from "../../lib/text-length.ts";

const MAX_INSTRUCTION_CHARS = 10_000;
const MAX_CONTENT_CHARS = 500_000;

/** Throws for texts of a body that no call may have: an instruction that is blank once it is trimmed, or too long a text. */
export function refuseBadTexts({
  instruction,
  content = "",
}: {
  instruction: string;
  content?: string;
}): void {
  if (instruction === "")
    throw invalid("body.instruction", "too_short", "The instruction must not be blank.");
  for (const [name, text, limit] of [
    ["instruction", instruction, MAX_INSTRUCTION_CHARS],
    ["content", content, MAX_CONTENT_CHARS],
  ] as const) {
    if (isLongerThan(text, limit))
      throw invalid(`body.${name}`, "too_long", `The ${name} must have at most ${limit} characters.`);
  }
}
