import { type Change, diffWordsWithSpace } from "diff";
import { type ReactNode, useMemo } from "react";
import { Scroll } from "../../ui/scroll.tsx";

/** How long the words of two long answers are compared before both are shown without marks. */
const COMPARING_MS = 200;

/** Two answers side by side, with the words marked that only one of them has. */
export function Differences({ before, after }: { before: string; after: string }) {
  const parts = useMemo(() => diffWordsWithSpace(before, after, { timeout: COMPARING_MS }), [before, after]);
  if (before === after) return <p className="text-sm text-soft">It says the very same.</p>;
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Side title="The answer that counts">{parts ? marked(parts, "removed", "bg-bad-soft") : before}</Side>
      <Side title="This run">{parts ? marked(parts, "added", "bg-good-soft") : after}</Side>
      {!parts && <p className="text-sm text-soft">They differ in so much that no words are marked.</p>}
    </div>
  );
}

/** The text of one side, whose own words are marked. */
function marked(parts: Change[], own: "added" | "removed", look: string): ReactNode[] {
  const other = own === "added" ? "removed" : "added";
  let from = 0;
  return parts.flatMap((part) => {
    if (part[other]) return [];
    from += part.value.length;
    return [
      part[own] ? (
        <mark key={from} className={`${look} rounded-sm text-text`}>
          {part.value}
        </mark>
      ) : (
        part.value
      ),
    ];
  });
}

function Side({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="min-w-0">
      <h3 className="mb-1 text-sm font-medium text-soft">{title}</h3>
      <Scroll
        label={title}
        className="max-h-96 rounded-lg border border-line p-3 text-sm whitespace-pre-wrap wrap-anywhere"
      >
        {children}
      </Scroll>
    </section>
  );
}
