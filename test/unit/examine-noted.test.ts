import { expect, test } from "bun:test";
import { type DnsNotes, withNotes } from "../../src/net/dns-notes.ts";
import type { Resolver } from "../../src/net/dns.ts";
import type { WorkOutcome } from "../../src/lib/worker-pool.ts";
import type { Examination } from "../../src/inbound/examine.ts";
import { examineByNotes } from "../../src/inbound/examine-noted.ts";

const NONE: DnsNotes = { answers: [], open: [] };
const codeOf = (error: unknown) => (error as { code: string }).code;

test("what was noted is answered without asking again, errors as well; what was not is noted as open", async () => {
  let asked = 0;
  const live = ((name: string) => {
    asked += 1;
    if (name === "none.example") throw Object.assign(new Error("no"), { code: "ENOTFOUND", rrtype: "TXT" });
    return Promise.resolve([["word"]]);
  }) as unknown as Resolver;
  const first = withNotes(NONE, async (...question) => live(...question));
  expect(await first.resolver("a.example", "TXT")).toEqual([["word"]]);
  expect(await first.resolver("none.example", "TXT").catch(codeOf)).toBe("ENOTFOUND");
  const notes = structuredClone(first.notes());
  const second = withNotes(notes);
  const mine = await second.resolver("a.example", "TXT");
  mine.pop();
  expect(await second.resolver("a.example", "TXT")).toEqual([["word"]]);
  expect(await second.resolver("none.example", "TXT").catch(codeOf)).toBe("ENOTFOUND");
  expect(await second.resolver("a.example", "A").catch(codeOf)).toBe("ETIMEOUT");
  expect(second.notes().open).toEqual([{ name: "a.example", rrtype: "A" }]);
  expect(asked).toBe(2);
});

/** Reads a mail of which the whole asks one thing after the other, and notes what is read. */
async function readBy(questions: string[]) {
  const parts: string[] = [];
  const outcome = await examineByNotes(async (part, notes): Promise<WorkOutcome<Examination>> => {
    parts.push(part);
    const noted = withNotes(notes, part === "head" ? async () => [] as never : undefined);
    const asked = part === "head" ? notes.open.map(({ name }) => name) : questions;
    let word = "pass";
    for (const name of asked) {
      const answer = await noted.resolver(name, "TXT").catch(codeOf);
      if (answer !== "ETIMEOUT") continue;
      word = "temperror";
      break;
    }
    return { ok: true, output: { subject: word, notes: noted.notes() } as Examination };
  });
  return { parts, word: outcome.ok ? outcome.output.subject : outcome.problem };
}

test("a mail is read once where its header says what is asked, and once more for what follows from the whole", async () => {
  expect(await readBy([])).toEqual({ parts: ["head", "whole"], word: "pass" });
  expect(await readBy(["a", "b"])).toEqual({
    parts: ["head", "whole", "head", "whole", "head", "whole"],
    word: "pass",
  });
});

test("a mail that has ever more asked is read five times, and undecided then", async () => {
  const { parts, word } = await readBy(Array.from({ length: 50 }, (_, at) => `n${at}`));
  expect([parts.filter((part) => part === "whole").length, word]).toEqual([5, "temperror"]);
});

test("a header that takes too long to read is the end of it", async () => {
  const read = () => Promise.resolve({ ok: false, problem: "too_slow" } as const);
  expect(await examineByNotes(read)).toEqual({ ok: false, problem: "too_slow" });
});
