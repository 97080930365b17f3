import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { connectionList, contextList } from "../../api/lists.ts";
import { TextArea } from "../../ui/field.tsx";
import { classes } from "../../ui/class-names.ts";

interface InstructionProps {
  value: string;
  fault: string | undefined;
  onChange: (value: string) => void;
}

interface Suggestion {
  text: string;
  words: string;
}

const MAX_SHOWN = 8;
const INTEGRATIONS = new Set(["notes", "codehost-a", "codehost-b", "sheets"]);
const FLAGS: Suggestion[] = [
  { text: "--private", words: "Keeps nothing of what is read and answered" },
  { text: "--allow-destructive", words: "Lets a named tool delete or overwrite" },
];

/** A text area that completes `@target`, `+context`, `$macro` and `--flag` (WAI-ARIA combobox with a list). */
export function InstructionField({ value, fault, onChange }: InstructionProps) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(0);
  const [at, setAt] = useState(0);
  const [closed, setClosed] = useState(false);
  const all = useSuggestions();
  const typed = /(?:^|\s)([@+$#-][^\s]*)$/.exec(value.slice(0, caret))?.[1] ?? "";
  const fitting =
    typed === "" || closed
      ? []
      : all.filter(({ text }) => text !== typed && text.startsWith(typed)).slice(0, MAX_SHOWN);
  const chosen = fitting[Math.min(at, fitting.length - 1)];
  const take = ({ text }: Suggestion): void => {
    const start = caret - typed.length;
    onChange(`${value.slice(0, start)}${text} ${value.slice(caret)}`);
    setCaret(start + text.length + 1);
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!chosen) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) setAt((at + move + fitting.length) % fitting.length);
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else if (event.key === "Escape") setClosed(true);
    else return;
    event.preventDefault();
  };
  return (
    <div className="relative grid gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        Instruction
      </label>
      <TextArea
        ref={area}
        id={id}
        required
        rows={3}
        role="combobox"
        aria-expanded={fitting.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={chosen ? `${id}-${chosen.text}` : undefined}
        aria-describedby={`${id}-hint`}
        aria-invalid={fault ? true : undefined}
        value={value}
        placeholder="Summarise this in three points"
        onKeyDown={onKeyDown}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onChange={(event) => {
          setClosed(false);
          setAt(0);
          setCaret(event.target.selectionStart);
          onChange(event.target.value);
        }}
      />
      <div
        id={`${id}-list`}
        role="listbox"
        tabIndex={-1}
        aria-label="What could follow"
        hidden={fitting.length === 0}
        className="absolute top-full z-10 w-full overflow-hidden rounded-lg border border-line bg-raised shadow-lg"
      >
        {fitting.map((suggestion) => (
          <div
            key={suggestion.text}
            id={`${id}-${suggestion.text}`}
            role="option"
            tabIndex={-1}
            aria-selected={suggestion === chosen}
            onMouseDown={(event) => {
              event.preventDefault();
              take(suggestion);
            }}
            className={classes(
              "flex cursor-pointer gap-3 px-3 py-1.5 text-sm",
              suggestion === chosen && "bg-hover",
            )}
          >
            <code className="font-mono">{suggestion.text}</code>
            <span className="truncate text-soft">{suggestion.words}</span>
          </div>
        ))}
      </div>
      <p id={`${id}-hint`} className="text-sm text-soft">
        @ names a tool, + a context, $ a macro, -- an option, # a tag.
      </p>
      {fault && <p className="text-sm text-bad">{fault}</p>}
    </div>
  );
}

function useSuggestions(): Suggestion[] {
  const { data: connections = [] } = useQuery(connectionList);
  const { data: contexts = [] } = useQuery(contextList);
  const targets = connections.flatMap(({ kind, category, label }): Suggestion[] => {
    if (INTEGRATIONS.has(kind)) return [{ text: `@${kind}`, words: label }];
    return category === "mcp"
      ? [{ text: `@mcp:${label.toLowerCase().replaceAll(/[^a-z0-9_-]+/g, "-")}`, words: label }]
      : [];
  });
  const named = contexts.map(({ kind, slug, title }) => ({
    text: `${kind === "command" ? "$" : "+"}${slug}`,
    words: title,
  }));
  return [...targets, ...named, ...FLAGS];
}
