import type { Activity } from "../../api/shapes.ts";

export type Highlight = NonNullable<Activity["highlights"]>[number];

/** How much stands before the first place on a line that a phone cuts off. */
const BEFORE_CHARS = 20;

/** A text in which the words are marked that a search has found. */
export function Marked({ text, spans }: Pick<Highlight, "text" | "spans">) {
  const parts = spans.flatMap(([from = 0, to = 0], at) => {
    const before = text.slice(spans[at - 1]?.[1] ?? 0, from);
    return [
      before,
      <mark key={from} className="rounded-xs bg-warn-soft text-text">
        {text.slice(from, to)}
      </mark>,
    ];
  });
  return (
    <>
      {parts}
      {text.slice(spans.at(-1)?.[1] ?? 0)}
    </>
  );
}

/** The same part of a text, beginning so near to the first place that this one is seen. */
export function nearer({ text, spans, ...found }: Highlight): Highlight {
  const [first = 0] = spans[0] ?? [];
  const blank = text.indexOf(" ", Math.max(0, first - BEFORE_CHARS));
  const from = first <= BEFORE_CHARS || blank === -1 ? 0 : Math.min(blank + 1, first);
  return {
    ...found,
    text: from === 0 ? text : `…${text.slice(from)}`,
    spans: spans.map((span) => span.map((at) => (from === 0 ? at : at - from + 1))),
  };
}
