import { type KeyboardEvent, useId, useRef, useState } from "react";
import type { FieldFault } from "../../api/client.ts";
import { classes } from "../../ui/class-names.ts";
import { TextArea } from "../../ui/field.tsx";
import { FaultOfField } from "../../ui/form-faults.tsx";
import { complete, type Suggestion, type Vocabulary } from "./completion.ts";

interface InstructionProps {
  value: string;
  fault: FieldFault | undefined;
  known: Vocabulary;
  onChange: (value: string) => void;
}

const ELSEWHERE = new Set(["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"]);

/** A text area that completes targets, options, contexts, tags and macros while they are typed. */
export function InstructionField({ value, fault, known, onChange }: InstructionProps) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(0);
  const [at, setAt] = useState(0);
  const [open, setOpen] = useState(false);
  const { typed, fitting: all } = complete(value.slice(0, caret), known);
  const fitting = open ? all : [];
  const take = ({ text }: Suggestion): void => {
    area.current?.setSelectionRange(caret - typed.length, caret);
    const gap = text.endsWith("=") || /^\s/.test(value.slice(caret)) ? "" : " ";
    // The one way to insert text that the field's own undo knows of.
    document.execCommand("insertText", false, `${text}${gap}`);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const chosen = fitting[at];
    if (!chosen || event.shiftKey || event.nativeEvent.isComposing) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (ELSEWHERE.has(event.key)) return setOpen(false);
    if (move) setAt((at + move + fitting.length) % fitting.length);
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else if (event.key === "Escape") setOpen(false);
    else return;
    event.preventDefault();
  };
  return (
    <div className="grid gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        Instruction
      </label>
      <div className="relative">
        <TextArea
          ref={area}
          id={id}
          required
          rows={3}
          aria-autocomplete="list"
          aria-haspopup="listbox"
          aria-controls={`${id}-list`}
          aria-activedescendant={fitting.length > 0 ? `${id}-${at}` : undefined}
          aria-describedby={fault ? `${id}-hint ${id}-fault` : `${id}-hint`}
          aria-invalid={fault ? true : undefined}
          value={value}
          placeholder="Summarise this in three points"
          onKeyDown={onKeyDown}
          onClick={() => setOpen(false)}
          onBlur={() => setOpen(false)}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onChange={(event) => {
            setOpen(true);
            setAt(0);
            setCaret(event.target.selectionStart);
            onChange(event.target.value);
          }}
        />
        <Options id={id} fitting={fitting} at={at} onTake={take} />
      </div>
      <p role="status" className="sr-only">
        {fitting.length > 0 &&
          `${fitting.length} suggestions. Arrow keys choose one, Enter takes it, Escape leaves them.`}
      </p>
      <p id={`${id}-hint`} className="text-sm text-soft">
        At the start, <Sign text="@" /> names a tool and <Sign text="$" /> a macro. Anywhere,{" "}
        <Sign text="+" /> adds a context, <Sign text="--" /> an option, <Sign text="#" /> a tag.
      </p>
      <FaultOfField id={`${id}-fault`} fault={fault} />
    </div>
  );
}

function Sign({ text }: { text: string }) {
  return <code className="font-mono font-semibold text-text">{text}</code>;
}

interface OptionsProps {
  id: string;
  fitting: Suggestion[];
  /** The index of the suggestion that the keys have chosen. */
  at: number;
  onTake: (suggestion: Suggestion) => void;
}

function Options({ id, fitting, at, onTake }: OptionsProps) {
  return (
    <div
      id={`${id}-list`}
      role="listbox"
      tabIndex={-1}
      aria-label="What could follow"
      hidden={fitting.length === 0}
      className="absolute top-full z-10 mt-1 max-h-64 w-full overflow-y-auto rounded-lg border border-line bg-raised py-1 shadow-lg"
    >
      {fitting.map((suggestion, index) => (
        <div
          key={suggestion.text}
          ref={index === at ? reveal : null}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === at}
          onMouseDown={(event) => {
            event.preventDefault();
            onTake(suggestion);
          }}
          className={classes(
            "flex cursor-pointer gap-3 px-3 py-1.5 text-sm max-sm:py-2.5",
            index === at ? "bg-accent-soft" : "hover:bg-hover",
          )}
        >
          <code className="font-mono whitespace-nowrap">{suggestion.text}</code>
          <span className="truncate text-soft">{suggestion.words}</span>
        </div>
      ))}
    </div>
  );
}

function reveal(option: HTMLElement | null): void {
  option?.scrollIntoView({ block: "nearest" });
}
