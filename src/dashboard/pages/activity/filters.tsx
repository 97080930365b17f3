import { useQuery } from "@tanstack/react-query";
import { Search, SlidersHorizontal } from "lucide-react";
import { useState } from "react";
import { inboxList } from "../../api/lists.ts";
import { Button } from "../../ui/button.tsx";
import { classes } from "../../ui/class-names.ts";
import { Field, Input, Select } from "../../ui/field.tsx";
import { Typed } from "../../ui/typed.tsx";
import type { Choice } from "./choice.ts";
import { SOURCES, STATUSES } from "./words.ts";

interface FiltersProps {
  choice: Choice;
  onChoose: (choice: Choice) => void;
  onClear: (() => void) | undefined;
}

/** The filters of the activity. On a phone, all but the search wait behind a button. */
export function Filters({ choice, onChoose, onClear }: FiltersProps) {
  const { q = "", ...others } = choice;
  const [open, setOpen] = useState(Object.keys(others).length > 0);
  const set = (name: keyof Choice, value: string): void => {
    const { [name]: _old, ...rest } = choice;
    onChoose(value === "" ? rest : { ...rest, [name]: value });
  };
  return (
    <search aria-label="The activity" className="grid gap-3">
      <div className="flex gap-2">
        <div className="relative flex-1">
          <Search aria-hidden className="pointer-events-none absolute top-2.5 left-3 size-4 text-soft" />
          <Typed
            type="search"
            aria-label="Search messages and files"
            aria-describedby="search-hint"
            placeholder="Search, such as: invoice from:ada has:file"
            maxLength={200}
            className="pl-9 [&::-webkit-search-cancel-button]:hidden"
            value={q}
            onTyped={(text) => set("q", text)}
          />
        </div>
        <Button
          className="sm:hidden"
          icon={<SlidersHorizontal />}
          aria-expanded={open}
          aria-controls="filters"
          onClick={() => setOpen(!open)}
        >
          Filters
        </Button>
        {onClear && (
          <Button look="quiet" onClick={onClear}>
            Clear
          </Button>
        )}
      </div>
      <p id="search-hint" className={classes("text-xs text-soft", q === "" && "sr-only")}>
        “Two words”, -without, from:ada, to:reports, subject:plan, tag:q3, has:file, after:2026-03-01,
        before:2026-03-31
      </p>
      <div
        id="filters"
        className={classes("grid grid-cols-2 items-end gap-3 sm:grid-cols-3", !open && "max-sm:hidden")}
      >
        <Choices choice={choice} set={set} />
        <Field label="Tag">
          <Typed
            placeholder="Such as #q3"
            maxLength={100}
            autoCapitalize="none"
            value={choice.tag ?? ""}
            onTyped={(text) => set("tag", text)}
          />
        </Field>
        <Field label="From">
          <Input
            type="date"
            max={choice.to}
            value={choice.from ?? ""}
            onChange={(event) => set("from", event.target.value)}
          />
        </Field>
        <Field label="To">
          <Input
            type="date"
            min={choice.from}
            value={choice.to ?? ""}
            onChange={(event) => set("to", event.target.value)}
          />
        </Field>
      </div>
    </search>
  );
}

type Set = (name: keyof Choice, value: string) => void;

function Choices({ choice, set }: { choice: Choice; set: Set }) {
  const { data: inboxes = [] } = useQuery(inboxList);
  const choices = [
    {
      name: "status",
      label: "Status",
      every: "Every status",
      options: Object.entries(STATUSES).map(([status, { word }]) => [status, word]),
    },
    {
      name: "source",
      label: "Source",
      every: "Every source",
      options: Object.entries(SOURCES).map(([source, { word }]) => [source, `${word}s`]),
    },
    {
      name: "inbox_id",
      label: "Inbox",
      every: "Every inbox",
      options: inboxes.map(({ id, label, address }) => [id, label || address]),
    },
  ] as const;
  return choices.map(({ name, label, every, options }) => (
    <Field key={name} label={label}>
      <Select value={choice[name] ?? ""} onChange={(event) => set(name, event.target.value)}>
        <option value="">{every}</option>
        {options.map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </Select>
    </Field>
  ));
}
