import type { Story, TestRun, TestRunCard } from "../../api/shapes.ts";
import type { BadgeLook } from "../../ui/badge.tsx";

export type Expected = NonNullable<Story["expected"]>;

const QUOTED_CHARS = 120;

/** What an answer should be, as a part of a sentence. */
export function expectedWords({ equals, contains }: Expected): string {
  if (equals !== undefined) return `is “${shortened(equals)}”`;
  return contains === undefined ? "fits a JSON schema" : `contains “${shortened(contains)}”`;
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > QUOTED_CHARS ? `${line.slice(0, QUOTED_CHARS - 1)}…` : line;
}

/** What each message of a run came to. */
export const STATUSES: Record<TestRun["items"][number]["status"], { word: string; look: BadgeLook }> = {
  processing: { word: "Under way", look: "accent" },
  passed: { word: "Passed", look: "good" },
  failed: { word: "Failed", look: "bad" },
  error: { word: "Error", look: "warn" },
};

/** What a run has come to so far: "2 of 3 passed, 1 under way". */
export function outcomeWords({ messages, passed, failed, errors, processing }: TestRunCard): string {
  const rest = [
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(errors > 0 ? [`${errors} with an error`] : []),
    ...(processing > 0 ? [`${processing} under way`] : []),
  ];
  return [`${passed} of ${messages} passed`, ...rest].join(", ");
}

/** With what a run was made: "gpt-4.1, today’s contexts"; `labelOf`: what a connection is called. */
export function askedWords({ asked }: TestRunCard, labelOf: (connection_id: string) => string): string {
  const { connection_id, model, instruction, contexts, context_versions, tag } = asked;
  const given = Object.keys(context_versions).length > 0;
  return [
    ...(connection_id === null ? [] : [labelOf(connection_id)]),
    ...(model === null ? [] : [model]),
    ...(connection_id === null && model === null ? ["the inbox's model"] : []),
    contexts === "now" ? "today’s contexts" : "contexts of then",
    ...(given ? ["other versions of some"] : []),
    ...(instruction === null ? [] : ["other words"]),
    ...(tag === null ? [] : [`only #${tag.replace(/^[#+]/, "")}`]),
  ].join(", ");
}
