import { type Static, Type } from "@sinclair/typebox";
import { t } from "elysia";

/** The lengths of the texts are checked in `submitContact`, in code points. */
export const contactBody = t.Object({
  name: t.String({ description: "1 to 100 characters.", examples: ["Ada Lovelace"] }),
  email: t.String({ description: "Where an answer goes.", examples: ["ada@example.com"] }),
  message: t.String({
    description: "1 to 5,000 characters.",
    examples: ["How do I move to another server?"],
  }),
  subject: t.Optional(t.String({ description: "At most 200 characters.", examples: ["Moving"] })),
  topic: t.Optional(t.String({ description: "At most 100 characters.", examples: ["support"] })),
  // A field that people do not see, so that only a machine fills it in.
  website: t.Optional(
    t.String({ description: "Leave it empty: people do not see this field.", examples: [""] }),
  ),
  // TypeBox's integer, since Elysia's own also takes a text, and an absent body for an empty object.
  started_at: t.Optional(
    Type.Integer({
      description: "When the form was shown, in unix milliseconds.",
      examples: [1_768_478_400_000],
    }),
  ),
});

export type ContactInput = Static<typeof contactBody>;

export const ContactShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    created: t.Integer({ description: "When it arrived, in unix seconds.", examples: [1_768_478_400] }),
    status: t.Literal("received"),
  },
  { $id: "ContactSubmission" },
);
