import { expect, test } from "bun:test";
import { leftOutWords, REFUSALS } from "../../src/reasons.ts";

test("people are told of no name that only programs know", () => {
  const left_out = ["auto_reply", "bulk", "mailing_list", "no_reply_sender", "loop_cap", "junk"].map(
    leftOutWords,
  );
  for (const words of [...left_out, ...Object.values(REFUSALS).map(({ shown }) => shown)]) {
    expect(words).toMatch(/^[A-Z]/);
    expect(words).not.toMatch(/[a-z]_[a-z]|[a-z]\.[a-z]/);
  }
});
