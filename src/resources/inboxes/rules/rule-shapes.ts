import { type Static, Type } from "@sinclair/typebox";
import { t } from "elysia";
import { ATTACH_TYPES, AUTHORITIES, DAYS, FIELDS, FILE_KINDS, FORMATS, MAX_RULES } from "./rules.ts";

const MAX_VALUES = 20;
const MAX_VALUE_CHARS = 200;
const MAX_CONDITIONS = 10;
const MAX_SIZE = 1_000_000_000;

const oneOf = <Name extends string>(names: readonly Name[], description?: string) =>
  t.Union(
    names.map((name) => t.Literal(name)),
    description === undefined ? {} : { description },
  );
const words = (description: string) =>
  t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: MAX_VALUE_CHARS }), { maxItems: MAX_VALUES, description }),
  );
const ids = (description: string) =>
  t.Optional(t.Array(t.String({ format: "uuid" }), { maxItems: MAX_VALUES, description }));
const CLOCK = { pattern: "^([01]?\\d|2[0-3]):[0-5]\\d$", examples: ["08:00"] };
const clock = (description: string) => t.Optional(t.String({ ...CLOCK, description }));
const daysOf = t.Optional(t.Array(oneOf(DAYS), { maxItems: DAYS.length, description: "Empty: every day." }));
const zone = t.Optional(
  t.String({ maxLength: 100, description: "An IANA name such as Europe/Berlin; yours if it is left out." }),
);

const conditionBody = t.Object({
  field: oneOf(FIELDS, "What is looked at."),
  is: words(
    `For \`sender\`, if it is proven: addresses (\`ada@example.com\`), domains (\`@example.com\`) or subdomains (\`@*.example.com\`). For \`tag\`: words behind the + of the address. For \`authority\`: ${AUTHORITIES.join(", ")}. For \`files\`: ${FILE_KINDS.join(", ")}. One of them is enough.`,
  ),
  contains: words(
    "For `subject`, `text` and `header`: words to be found there, one of which is enough; capitals do not matter. A `header` without it only has to be there.",
  ),
  name: t.Optional(
    t.String({
      pattern: "^[!-9;-~]{1,76}$",
      description: "For `header`: the field, such as `List-Id`.",
      examples: ["List-Id"],
    }),
  ),
  over_bytes: t.Optional(Type.Integer({ minimum: 0, maximum: MAX_SIZE, description: "For `size`." })),
  under_bytes: t.Optional(Type.Integer({ minimum: 1, maximum: MAX_SIZE, description: "For `size`." })),
  days: daysOf,
  from: clock("For `time`: from this time of the day on, `HH:MM`."),
  to: clock("For `time`: up to this time; before `from`, it is that of the next day."),
  zone,
  not: t.Optional(t.Boolean({ description: "True: it must not be so." })),
});

const optionsBody = t.Object(
  {
    format: t.Optional(oneOf(FORMATS)),
    lang: t.Optional(t.String({ minLength: 1, maxLength: 100 })),
    "max-tokens": t.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    temperature: t.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    attach: t.Optional(oneOf(ATTACH_TYPES)),
    tools: t.Optional(t.Literal(false)),
    private: t.Optional(t.Literal(true)),
  },
  {
    description:
      "Flags, as an instruction may have them. Those of the instruction count for more, but what `tools` and `private` forbid it cannot allow.",
  },
);

const actionsBody = t.Object({
  context_ids: ids("Contexts of yours that it works by, also for mail of strangers."),
  connection_id: t.Optional(
    t.String({ format: "uuid", description: "The model connection in place of the inbox's own." }),
  ),
  model: t.Optional(
    t.String({ minLength: 1, maxLength: 200, description: "Another model of the connection." }),
  ),
  options: t.Optional(optionsBody),
  instruction: t.Optional(
    t.String({
      minLength: 1,
      maxLength: 10_000,
      description: "What is to be done if the message itself asks for nothing; plain words, no commands.",
    }),
  ),
  tags: t.Optional(
    t.Array(t.String({ maxLength: 200 }), {
      maxItems: 20,
      description: "Tags that it gets.",
      examples: [["money"]],
    }),
  ),
  authority: t.Optional(
    t.Literal("stranger", {
      description: "Its words are read as a stranger's: as material, never as an instruction.",
    }),
  ),
  answer: t.Optional(t.Literal(false, { description: "No answer is mailed." })),
  forward_to: t.Optional(
    t.String({
      maxLength: 254,
      description:
        "The whole mail goes there as a file; only the address of your account, once it is proven.",
    }),
  ),
  wait: t.Optional(
    t.Object(
      { until: t.String(CLOCK), days: daysOf, zone },
      {
        description: "It waits for the next such time, and is then worked on.",
      },
    ),
  ),
  skip: t.Optional(
    t.Literal(true, {
      description: "It is left out (`skipped`): its content is not kept, and nothing is charged.",
    }),
  ),
  keep: t.Optional(
    t.Literal(true, {
      description:
        "It is not worked on (`skipped`), but kept, for you to read, to have it done after all, or for a digest.",
    }),
  ),
  stop: t.Optional(t.Literal(true, { description: "No rule below is looked at." })),
});

const ruleMembers = {
  name: t.String({ description: "1 to 80 characters, no two alike.", examples: ["Newsletters"] }),
  enabled: t.Optional(t.Boolean({ default: true })),
  match: t.Optional(oneOf(["all", "any"], "Whether all conditions must be so, or one is enough.")),
  when: t.Array(conditionBody, { maxItems: MAX_CONDITIONS, description: "Empty: every message." }),
  question: t.Optional(
    t.Nullable(
      t.String({
        maxLength: 500,
        description:
          "Asked of the model if all the rest is so, without tools, and once for each message: the rule is for it if the answer is yes.",
        examples: ["Is this an invoice?"],
      }),
    ),
  ),
  do: actionsBody,
};
const EXAMPLE = {
  name: "Newsletters",
  enabled: true,
  match: "all",
  when: [{ field: "header", name: "List-Id" }],
  question: null,
  do: { keep: true },
};
const ruleBody = t.Object(ruleMembers);
const RuleShape = t.Object(ruleMembers, { $id: "Rule", examples: [EXAMPLE] });

/** What rules do together with a message. */
export const actsShape = t.Object(actionsBody.properties, {
  description:
    "What they give it together, as in `do` of a rule. Of mail that is left out or kept, only its tags and where it is forwarded.",
  examples: [{ tags: ["money"] }],
});

/** The rules of an inbox as they come in, and as they go out. */
export const rulesBody = t.Array(ruleBody, {
  maxItems: MAX_RULES,
  description:
    "Looked at in their order; what several say is put together, and of one thing the first says it.",
  examples: [[EXAMPLE]],
});
export const rulesShape = t.Array(RuleShape, { examples: [[EXAMPLE]] });

export type RuleBody = Static<typeof ruleBody>;
