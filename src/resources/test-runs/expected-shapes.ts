import { t } from "elysia";

/** Which of the members is there says how an answer is compared. */
const expectedMembers = {
  equals: t.Optional(
    t.String({ description: "The whole answer; blanks and line ends count as one blank each." }),
  ),
  contains: t.Optional(
    t.String({
      description: "Words that stand in the answer, compared in the same way.",
      examples: ["noon"],
    }),
  ),
  schema: t.Optional(
    t.Record(t.String(), t.Unknown(), {
      description:
        "A JSON Schema (2020-12) that the answer, or its only block of code, fits as JSON. All of it counts but `format`; what cannot be checked in bounded time, such as `pattern`, is refused.",
    }),
  ),
};

/** What stands in `expected` of the change of a message. */
export const expectedBody = t.Nullable(
  t.Object(expectedMembers, {
    description:
      "Stars the message: it belongs to the test set, and its answer should be so. One of the three members, of at most 20,000 characters. null takes it out again.",
    additionalProperties: true,
    examples: [{ contains: "noon" }],
  }),
);

export const expectedShape = t.Nullable(
  t.Object(expectedMembers, {
    description: "What the answer to a starred message should be; null of one that is not starred.",
    examples: [{ contains: "noon" }],
  }),
);
