import type { Story } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Files } from "../../ui/files.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Card } from "../../ui/page.tsx";

/** What was read as the instruction, and how it was understood. */
export function Asked({ story: { instruction, command, steps } }: { story: Story }) {
  const marks = command ? marksOf(command) : [];
  const by_inbox = steps.find(({ name }) => name === "default_instruction")?.output;
  return (
    <Card title="What was asked">
      {instruction ? (
        <p className="whitespace-pre-wrap wrap-anywhere">{instruction}</p>
      ) : (
        <p className="text-soft">{by_inbox ?? "Nothing here counted as an instruction."}</p>
      )}
      {marks.length > 0 && (
        <p className="mt-3 flex flex-wrap items-center gap-2 text-sm text-soft">
          Understood as
          {marks.map((mark) => (
            <Badge key={mark}>{mark}</Badge>
          ))}
        </p>
      )}
    </Card>
  );
}

/** The parts of an instruction that steer, as they are written in one. */
function marksOf({ target, options, contexts, tags, macro }: NonNullable<Story["command"]>): string[] {
  return [
    ...(target === null ? [] : [`@${target}`]),
    ...(macro === null ? [] : [`$${macro}`]),
    ...Object.entries(options).map(([name, value]) => markOf(name, value)),
    ...contexts.map((slug) => `+${slug}`),
    ...tags.map((tag) => `#${tag}`),
  ];
}

function markOf(name: string, value: unknown): string {
  if (value === true) return `--${name}`;
  return value === false ? `--no-${name}` : `--${name}=${String(value)}`;
}

/** What was read as data: the model gets it behind a fence. */
export function Material({
  story: { status, content, content_truncated, command, attachments },
}: {
  story: Story;
}) {
  const files = attachments.filter(({ direction }) => direction === "in");
  if (content === "" && files.length === 0) return null;
  return (
    <Card title="What was read, and never obeyed">
      <div className="grid gap-3">
        {content === null && (
          <p className="text-soft">{whyGone(status, command?.options["private"] === true)}</p>
        )}
        {content && <LongText label="The text" text={content} className="max-h-96 p-3 font-sans text-sm" />}
        {content_truncated && <p className="text-sm text-soft">There is more of it.</p>}
        <Files files={files} />
      </div>
    </Card>
  );
}

function whyGone(status: Story["status"], was_private: boolean): string {
  if (was_private) return "You asked for --private, so it was not kept.";
  return status === "rejected" ? "It was not taken, so it is not kept." : "The text is no longer kept.";
}
