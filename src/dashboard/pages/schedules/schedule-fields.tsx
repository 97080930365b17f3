import { useQuery } from "@tanstack/react-query";
import type { faultOf } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Schedule } from "../../api/shapes.ts";
import { Field, Select, TextArea } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";

export interface Settings {
  title: string;
  instruction: string;
  /** Empty: the default one. */
  inbox_id: string;
  how: "every" | "at";
  when: string;
  timezone: string;
  until: string;
  /** What came in since the last run: nothing of it, or that of these inboxes, with a tag or of a rule. */
  over: "none" | "inbox" | "all";
  tag: string;
  rule: string;
}

export function newSettings(timezone: string): Settings {
  const nothing = { title: "", instruction: "", inbox_id: "", until: "", tag: "", rule: "" };
  return { ...nothing, how: "every", when: "weekday 8:00", timezone, over: "none" };
}

export function settingsOf(schedule: Schedule): Settings {
  const { title, instruction, inbox_id, every, at, timezone, until, over } = schedule;
  const once = at === null ? "" : localTime(at, timezone);
  return {
    title,
    instruction,
    inbox_id,
    how: every === null && at !== null ? "at" : "every",
    when: every ?? once,
    timezone,
    until: until === null ? "" : localTime(until, timezone),
    over: over === null ? "none" : over.inbox_id === null ? "all" : "inbox",
    tag: over?.tag ?? "",
    rule: over?.rule ?? "",
  };
}

/** "2026-12-24 09:00", which is read back as it is written. */
function localTime(at: number, timeZone: string): string {
  return new Date(at * 1000).toLocaleString("sv-SE", { timeZone }).slice(0, "YYYY-MM-DD HH:MM".length);
}

/** The body of a request for a new schedule. */
export function newBodyOf(settings: Settings) {
  const { title, inbox_id, until } = settings;
  return {
    ...changeOf(settings),
    ...(title.trim() === "" ? { title: undefined } : {}),
    ...(until.trim() === "" ? { until: undefined } : {}),
    ...(inbox_id === "" ? {} : { inbox_id }),
  };
}

/** The body of a change. */
function changeOf({ title, instruction, how, when, timezone, until, over, tag, rule, inbox_id }: Settings) {
  const gathers = {
    inbox_id: over === "inbox" && inbox_id !== "" ? inbox_id : null,
    tag: tag.trim() || null,
    rule: rule.trim() || null,
  };
  return {
    title,
    instruction,
    [how]: when,
    timezone,
    until: until.trim() || null,
    over: over === "none" ? null : gathers,
  };
}

/** What has changed: an instruction that stays must not become another message. */
export function changesOf(before: Settings, after: Settings) {
  const [was, is] = [changeOf(before), changeOf(after)] as [Record<string, unknown>, Record<string, unknown>];
  return Object.fromEntries(
    Object.entries(is).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(was[name])),
  );
}

const HINTS = {
  every:
    "Such as: daily 8:00 · weekday 8:00 · monday 9:00 · monthly 15 · hourly. Or a crontab pattern of five fields.",
  at: "Such as: tomorrow 9:00 · in 3 days · 2026-12-24 18:00.",
};

interface FieldsProps {
  settings: Settings;
  fault: ReturnType<typeof faultOf>;
  isNew?: boolean;
  onChange: (settings: Settings) => void;
}

export function ScheduleFields({ settings, fault, isNew = false, onChange }: FieldsProps) {
  const set = (change: Partial<Settings>): void => onChange({ ...settings, ...change });
  const { how } = settings;
  return (
    <>
      <Field
        label="What is to be done"
        hint="As you would write it to the inbox: @targets, +contexts and --flags count."
        fault={fault("instruction")}
      >
        <TextArea
          required
          value={settings.instruction}
          onChange={(event) => set({ instruction: event.target.value })}
        />
      </Field>
      <div className="grid gap-4 sm:grid-cols-[12rem_minmax(0,1fr)]">
        <Field label="How often">
          <Select
            value={how}
            onChange={(event) => set({ how: event.target.value as "every" | "at", when: "" })}
          >
            <option value="every">Again and again</option>
            <option value="at">Once</option>
          </Select>
        </Field>
        <TextField
          label="When"
          hint={HINTS[how]}
          fault={fault(how)}
          required
          maxLength={100}
          value={settings.when}
          onChange={(when) => set({ when })}
        />
      </div>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Time zone"
          fault={fault("timezone")}
          required
          value={settings.timezone}
          onChange={(timezone) => set({ timezone })}
        />
        {how === "every" && (
          <TextField
            label="Until"
            hint="Empty: for ever."
            fault={fault("until")}
            maxLength={100}
            value={settings.until}
            onChange={(until) => set({ until })}
          />
        )}
      </div>
      {isNew && <InboxField settings={settings} onChange={(inbox_id) => set({ inbox_id })} />}
      <OverFields settings={settings} fault={fault} set={set} />
      <TextField
        label="Title"
        hint="The subject of its mails. Empty: the first line of what is to be done."
        fault={fault("title")}
        maxLength={200}
        required={!isNew}
        value={settings.title}
        onChange={(title) => set({ title })}
      />
    </>
  );
}

function InboxField({
  settings: { inbox_id },
  onChange,
}: {
  settings: Settings;
  onChange: (inbox_id: string) => void;
}) {
  const { data: inboxes = [] } = useQuery(inboxList);
  const chosen = inbox_id || (inboxes.find(({ is_default }) => is_default)?.id ?? "");
  return (
    <Field label="Inbox" hint="Its model, tools and contexts do the work.">
      <Select value={chosen} onChange={(event) => onChange(event.target.value)}>
        {inboxes.map(({ id, label }) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
      </Select>
    </Field>
  );
}

function OverFields({
  settings: { over, tag, rule },
  fault,
  set,
}: Pick<FieldsProps, "settings" | "fault"> & { set: (change: Partial<Settings>) => void }) {
  return (
    <>
      <Field
        label="Mail to work on"
        hint={
          over === "none"
            ? undefined
            : "A run without such mail does nothing, costs nothing and mails nothing."
        }
        fault={fault("over")}
      >
        <Select value={over} onChange={(event) => set({ over: event.target.value as Settings["over"] })}>
          <option value="none">None</option>
          <option value="inbox">What came to this inbox since the last run</option>
          <option value="all">What came to any inbox since the last run</option>
        </Select>
      </Field>
      {over !== "none" && (
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField
            label="Only with the tag"
            value={tag}
            maxLength={100}
            onChange={(text) => set({ tag: text })}
          />
          <TextField
            label="Only by the rule"
            hint="The name of a rule of the inbox."
            value={rule}
            maxLength={200}
            onChange={(text) => set({ rule: text })}
          />
        </div>
      )}
    </>
  );
}
