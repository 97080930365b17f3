import { useQuery } from "@tanstack/react-query";
import { contextList } from "../../api/lists.ts";
import { nameAmong } from "./inbox-contexts.tsx";
import { session } from "../../api/session.ts";
import { Checkbox, Field, Select, TextArea } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { OtherModel } from "./other-model.tsx";
import { type Fault, Lines } from "./rule-conditions.tsx";
import { clockWords, type Rule } from "./rule-words.ts";

type Then = Rule["do"];

const ENDS = [
  { id: "", label: "Work on it" },
  { id: "skip", label: "Leave it out, and delete its content" },
  { id: "keep", label: "Keep it, without working on it" },
] as const;

/** What a rule does. */
export function ActionFields({
  acts,
  fault,
  onChange,
}: {
  acts: Then;
  fault: (name: string) => Fault;
  onChange: (acts: Then) => void;
}) {
  const { data: me } = useQuery(session);
  const end = acts.skip ? "skip" : acts.keep ? "keep" : "";
  /** Members without a value are left out of what is sent. */
  const set = (part: { [Name in keyof Then]?: Then[Name] | undefined }): void =>
    onChange(
      Object.fromEntries(
        Object.entries({ ...acts, ...part }).filter(([, value]) => value !== undefined),
      ) as Then,
    );
  return (
    <fieldset className="grid gap-3">
      <legend className="font-semibold">Then</legend>
      <Field label="What becomes of it" fault={fault("keep")}>
        <Select
          value={end}
          onChange={(event) =>
            set({
              skip: event.target.value === "skip" ? true : undefined,
              keep: event.target.value === "keep" ? true : undefined,
            })
          }
        >
          {ENDS.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </Select>
      </Field>
      {end === "" && <WorkFields acts={acts} fault={fault} set={set} />}
      <Lines
        label="Tags that it gets"
        hint="One a line."
        fault={fault("tags")}
        lines={acts.tags ?? []}
        onChange={(tags) => set({ tags: tags.length > 0 ? tags : undefined })}
      />
      {me?.email_verified && (
        <Checkbox
          label={`Forward the whole mail to ${me.email}`}
          checked={acts.forward_to !== undefined}
          onChange={(event) => set({ forward_to: event.target.checked ? me.email : undefined })}
        />
      )}
      <Checkbox
        label="Look at no rule below this one"
        checked={acts.stop === true}
        onChange={(event) => set({ stop: event.target.checked ? true : undefined })}
      />
    </fieldset>
  );
}

interface WorkFieldsProps {
  acts: Then;
  fault: (name: string) => Fault;
  set: (part: { [Name in keyof Then]?: Then[Name] | undefined }) => void;
}

/** What only matters where a message is worked on. */
function WorkFields({ acts, fault, set }: WorkFieldsProps) {
  const { data: contexts = [] } = useQuery(contextList);
  const chosen = acts.context_ids ?? [];
  return (
    <>
      <Field
        label="Instruction, where the mail itself asks for nothing"
        hint="Such as “Make a row of it in the sheet”. Plain words; in mail of strangers it is done without tools."
        fault={fault("instruction")}
      >
        <TextArea
          rows={2}
          maxLength={10_000}
          value={acts.instruction ?? ""}
          onChange={(event) => set({ instruction: event.target.value || undefined })}
        />
      </Field>
      {contexts.length > 0 && (
        <fieldset className="grid gap-1">
          <legend className="text-sm font-medium">Contexts that it works by</legend>
          <div className="max-h-48 overflow-y-auto">
            {contexts
              .filter(({ kind }) => kind !== "command")
              .map((context) => (
                <Checkbox
                  key={context.id}
                  label={nameAmong(contexts, context)}
                  checked={chosen.includes(context.id)}
                  onChange={(event) => {
                    const next = event.target.checked
                      ? [...chosen, context.id]
                      : chosen.filter((other) => other !== context.id);
                    set({ context_ids: next.length > 0 ? next : undefined });
                  }}
                />
              ))}
          </div>
        </fieldset>
      )}
      <ModelFields acts={acts} fault={fault} set={set} />
      <LimitFields acts={acts} set={set} />
    </>
  );
}

/** Sets options of a run; one without a value is left out. */
function optionsWith(
  acts: Then,
  part: { [Name in keyof Options]?: Options[Name] | undefined },
): Then["options"] {
  const options = Object.fromEntries(
    Object.entries({ ...acts.options, ...part }).filter(([, value]) => value !== undefined && value !== ""),
  );
  return Object.keys(options).length > 0 ? options : undefined;
}

type Options = NonNullable<Then["options"]>;

/** Who answers, how and when. */
function ModelFields({ acts, fault, set }: WorkFieldsProps) {
  return (
    <>
      <OtherModel
        connection_id={acts.connection_id ?? ""}
        model={acts.model ?? ""}
        fault={fault}
        onConnection={(connection_id) => set({ connection_id: connection_id || undefined })}
        onModel={(model) => set({ model: model || undefined })}
      />
      <TextField
        label="Language of the answer"
        maxLength={100}
        value={acts.options?.lang ?? ""}
        onChange={(lang) => set({ options: optionsWith(acts, { lang }) })}
      />
      <TextField
        label="Wait until"
        hint={`${clockWords(acts.wait?.zone)} Left empty, it is worked on at once.`}
        type="time"
        fault={fault("wait")}
        value={acts.wait?.until ?? ""}
        onChange={(until) => set({ wait: until === "" ? undefined : { ...acts.wait, until } })}
      />
    </>
  );
}

/** What is not to be done. */
function LimitFields({ acts, set }: Omit<WorkFieldsProps, "fault">) {
  return (
    <>
      <Checkbox
        label="Use no tools"
        checked={acts.options?.tools === false}
        onChange={(event) =>
          set({ options: optionsWith(acts, { tools: event.target.checked ? false : undefined }) })
        }
      />
      <Checkbox
        label="Keep nothing of it afterwards (--private)"
        checked={acts.options?.private === true}
        onChange={(event) =>
          set({ options: optionsWith(acts, { private: event.target.checked ? true : undefined }) })
        }
      />
      <Checkbox
        label="Read its words as a stranger’s, never as an instruction"
        checked={acts.authority !== undefined}
        onChange={(event) => set({ authority: event.target.checked ? "stranger" : undefined })}
      />
      <Checkbox
        label="Mail no answer"
        checked={acts.answer === false}
        onChange={(event) => set({ answer: event.target.checked ? false : undefined })}
      />
    </>
  );
}
