import { isKnownFlag } from "../../../pipeline/settings.ts";
import type { Story } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Files } from "../../ui/files.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Card } from "../../ui/page.tsx";
import { isLeftOut } from "./story-words.ts";

/** What was read as the instruction, and how it was understood. */
export function Asked({ story }: { story: Story }) {
  const { instruction, command, steps } = story;
  const marks = command ? marksOf(command) : [];
  const wishes = command ? flagsOf(command.options, { known: false }) : [];
  const by_inbox = steps.find(({ name }) => name === "default_instruction")?.output;
  return (
    <Card title="What was asked">
      {instruction ? (
        <p className="whitespace-pre-wrap wrap-anywhere">{instruction}</p>
      ) : (
        <p className="text-soft">{by_inbox ?? (command ? NOTHING_ASKED : unreadWords(story))}</p>
      )}
      <Marks words="Understood as" marks={marks} />
      <Marks words="Left for the model to understand" marks={wishes} />
    </Card>
  );
}

function Marks({ words, marks }: { words: string; marks: string[] }) {
  if (marks.length === 0) return null;
  return (
    <p className="mt-3 flex flex-wrap items-center gap-2 text-sm text-soft">
      {words}
      {marks.map((mark) => (
        <Badge key={mark}>{mark}</Badge>
      ))}
    </p>
  );
}

const NOTHING_ASKED = "Nothing here counted as an instruction.";
/** Said where there is no instruction: it is stored when the run ends. */
const ENDED_BEFORE = "It ended before its instruction was read.";

function unreadWords(story: Story): string {
  if (isLeftOut(story)) return "It was left out before anything in it counted as an instruction.";
  return story.status === "rejected" && story.source === "email"
    ? "The mail was refused before it was read."
    : ENDED_BEFORE;
}

type Command = NonNullable<Story["command"]>;

/** The target, flags, contexts, tags and macro of an instruction, as they are written in one. */
function marksOf({ target, options, contexts, tags, macro }: Command): string[] {
  return [
    ...(target === null ? [] : [`@${target}`]),
    ...(macro === null ? [] : [`$${macro}`]),
    ...flagsOf(options, { known: true }),
    ...contexts.map((slug) => `+${slug}`),
    ...tags.map((tag) => `#${tag}`),
  ];
}

/** The flags that the server knows, or those that it passes on to the model. */
function flagsOf(options: Command["options"], { known }: { known: boolean }): string[] {
  return Object.entries(options)
    .filter(([name]) => isKnownFlag(name) === known)
    .map(([name, value]) => markOf(name, value));
}

function markOf(name: string, value: unknown): string {
  if (value === true) return `--${name}`;
  return value === false ? `--no-${name}` : `--${name}=${String(value)}`;
}

/** What was read as data, which the model gets behind a fence; before the end of a run all of it may be here. */
export function Material({ story }: { story: Story }) {
  const { source, content, content_truncated, command, attachments } = story;
  const files = attachments.filter(({ direction }) => direction === "in");
  if (content === "" && files.length === 0) return null;
  return (
    <Card title={command ? "What was read as data" : "What came in"}>
      <div className="grid gap-3">
        {command && <p className="text-sm text-soft">{source === "email" ? DATA_OF_MAIL : DATA}</p>}
        {content === null && <p className="text-soft">{whyGone(story)}</p>}
        {content && <LongText label="The text" text={content} className="max-h-96 p-3 font-sans text-sm" />}
        {content_truncated && <p className="text-sm text-soft">There is more of it.</p>}
        <Files files={files} />
      </div>
    </Card>
  );
}

const DATA = "It is read, and never obeyed.";
const DATA_OF_MAIL =
  "It is read, and never obeyed. One exception: in a new mail by you, or by somebody on this inbox’s list, the subject is an instruction too.";

function whyGone(story: Story): string {
  if (story.command?.options["private"] === true) return "You asked for --private, so it was not kept.";
  if (isLeftOut(story) && story.reason !== "kept_by_rule") return "It was left out, so it is not kept.";
  return story.status === "rejected" && !isLeftOut(story)
    ? "It was not taken, so it is not kept."
    : "The text is no longer kept.";
}
