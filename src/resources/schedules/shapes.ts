import type { Static } from "@sinclair/typebox";
import { t } from "elysia";
import { moment } from "../../http/shapes.ts";
import { activityStatus } from "../messages/shapes.ts";

const MAX_WORDS = 100;

const title = t.String({ minLength: 1, description: "1 to 200 characters.", examples: ["Morning digest"] });
const instruction = t.String({
  minLength: 1,
  description: "1 to 10,000 characters: trusted, like that of a call.",
  examples: ["Summarise what came in, the most urgent first."],
});
const every = t.String({
  minLength: 1,
  maxLength: MAX_WORDS,
  description:
    "How often it runs: words such as `weekday 8:00`, `monday 9:00`, `monthly 15`, `hourly`, or a pattern of five fields with one number as its minute. At least an hour lies between two runs.",
  examples: ["weekday 8:00"],
});
const at = t.String({
  minLength: 1,
  maxLength: MAX_WORDS,
  description: "The only time at which it runs: `tomorrow 9:00`, `in 3 days`, `2026-12-24T09:00`.",
  examples: ["tomorrow 9:00"],
});
const timezone = t.String({
  minLength: 1,
  maxLength: MAX_WORDS,
  description: "The IANA zone on whose clock its times are read; the account's by default.",
  examples: ["Europe/Berlin"],
});
const until = t.Nullable(
  t.String({
    minLength: 1,
    maxLength: MAX_WORDS,
    description: "The last moment at which it may run, as in `at`; a day means its end.",
  }),
  { examples: ["2026-12-31"] },
);
const over = t.Nullable(
  t.Object({
    inbox_id: t.Optional(
      t.Nullable(t.String({ format: "uuid" }), { description: "Mail of this inbox; null: of all inboxes." }),
    ),
    tag: t.Optional(
      t.Nullable(t.String({ minLength: 1, maxLength: 100 }), {
        description: "Mail with this tag.",
        examples: ["q3"],
      }),
    ),
    rule: t.Optional(
      t.Nullable(t.String({ minLength: 1, maxLength: 200 }), {
        description: "Mail that the rule of this name was for.",
        examples: ["Newsletters"],
      }),
    ),
  }),
  {
    description:
      "Makes it a digest: mail that came in since its last run, and fits all of these, is its material. A run without such mail does nothing and costs nothing.",
  },
);

export const newScheduleBody = t.Object({
  instruction,
  title: t.Optional(title),
  inbox_id: t.Optional(t.String({ format: "uuid", description: "The default inbox without one." })),
  content: t.Optional(t.String({ description: "Material of each run: data that is read and never obeyed." })),
  every: t.Optional(every),
  at: t.Optional(at),
  timezone: t.Optional(timezone),
  until: t.Optional(until),
  over: t.Optional(over),
});

export const scheduleBody = t.Object({
  instruction: t.Optional(instruction),
  title: t.Optional(title),
  every: t.Optional(every),
  at: t.Optional(at),
  timezone: t.Optional(timezone),
  until: t.Optional(until),
  over: t.Optional(over),
  paused: t.Optional(
    t.Boolean({ description: "A paused schedule does not run, and what it missed is not made up." }),
  ),
});

export type NewSchedule = Static<typeof newScheduleBody>;
export type ScheduleInput = Static<typeof scheduleBody>;

const id = t.String({ format: "uuid" });

export const ScheduleShape = t.Object(
  {
    id,
    inbox_id: id,
    message_id: t.String({ format: "uuid", description: "The message that is worked on again and again." }),
    title,
    instruction: t.String({ description: "As it was written; empty for a mail that says nothing itself." }),
    every: t.Nullable(t.String({ description: "Its pattern of five fields.", examples: ["0 8 * * 1-5"] })),
    at: t.Nullable(moment("Its only time")),
    in_words: t.Nullable(t.String({ examples: ["every weekday at 08:00"] })),
    timezone,
    until: t.Nullable(moment("The last moment at which it may run")),
    over: t.Nullable(
      t.Object({ inbox_id: t.Nullable(id), tag: t.Nullable(t.String()), rule: t.Nullable(t.String()) }),
    ),
    status: t.Union([t.Literal("active"), t.Literal("paused"), t.Literal("ended"), t.Literal("unclear")], {
      description: "`unclear`: it waits for a time that can be read.",
    }),
    reason: t.Nullable(
      t.String({
        description: "Why it is paused, has ended, left out its last time, or left mail to its next run.",
      }),
    ),
    next_times: t.Array(moment("A time to come"), { description: "The next three." }),
    failures: t.Integer({ minimum: 0, description: "How many runs in a row have failed; three pause it." }),
    created_by: t.Nullable(t.String({ description: "Whose mail made it; null: made over HTTP." })),
    last_run: t.Nullable(t.Object({ message_id: id, status: activityStatus })),
    created: moment("When it was made"),
    updated: moment("When it was last changed"),
  },
  { $id: "Schedule", description: "An instruction that is worked on at times to come." },
);
