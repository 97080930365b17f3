import type { Resolver } from "./dns.ts";
import { dnsErrorCode } from "./dns.ts";
import type { DnsAnswers, DnsErrorCode } from "./dns-reply.ts";

export interface Question {
  name: string;
  rrtype: keyof DnsAnswers;
}

/** An answer of the DNS, as plain data. */
type Noted = Question & ({ values: DnsAnswers[keyof DnsAnswers] } | { error: DnsErrorCode });

/** The questions and answers for one mail, so that it can be examined again without waiting for the DNS. */
export interface DnsNotes {
  answers: Noted[];
  /** Questions that have not been asked yet. */
  open: Question[];
}

export interface NotedResolver {
  resolver: Resolver;
  notes(): DnsNotes;
}

/**
 * Returns a resolver that answers from `notes`. Other questions go to `live`, and their answers into the notes; without
 * `live` the question is recorded, and has no answer yet.
 */
export function withNotes(notes: DnsNotes, live?: Resolver): NotedResolver {
  const known = new Map(notes.answers.map((noted) => [keyOf(noted), noted]));
  const open = new Map<string, Question>();

  const note = async ({ name, rrtype }: Question, ask: Resolver): Promise<Noted> => {
    try {
      return { name, rrtype, values: await ask(name, rrtype) };
    } catch (error) {
      return { name, rrtype, error: dnsErrorCode(error) ?? "ESERVFAIL" };
    }
  };
  const find = async (question: Question): Promise<Noted> => {
    const key = keyOf(question);
    const noted = known.get(key) ?? (live && (await note(question, live)));
    if (noted === undefined) {
      open.set(key, question);
      return { ...question, error: "ETIMEOUT" };
    }
    known.set(key, noted);
    return noted;
  };

  return {
    resolver: async <T extends keyof DnsAnswers>(name: string, rrtype: T): Promise<DnsAnswers[T]> => {
      const noted = await find({ name, rrtype });
      // Every caller gets its own copy: some sort or annotate what they are given.
      if ("values" in noted) return structuredClone(noted.values) as DnsAnswers[T];
      const words = `DNS lookup of ${rrtype} ${name} failed: ${noted.error}`;
      throw Object.assign(new Error(words), { code: noted.error, name, rrtype });
    },
    notes: () => ({ answers: [...known.values()], open: [...open.values()] }),
  };
}

function keyOf({ name, rrtype }: Question): string {
  return `${rrtype} ${name}`;
}
