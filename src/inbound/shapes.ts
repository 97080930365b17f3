import { t } from "elysia";

export const MailTakenShape = t.Object(
  {
    recipients: t.Array(
      t.Object({
        recipient: t.String({ description: "As it was in the envelope.", examples: ["desk@example.org"] }),
        status: t.Union([t.Literal("accepted"), t.Literal("refused")], {
          description:
            "`accepted`: the mail is on disk. `refused`: with a `code` below 500 it may be handed in again later, for this recipient alone; else it never will be taken, and its sender should hear `text`.",
          examples: ["accepted"],
        }),
        code: t.Integer({ description: "What SMTP would have answered.", examples: [250] }),
        enhanced: t.String({ description: "The status code of RFC 3463.", examples: ["2.6.0"] }),
        text: t.String({ examples: ["Message accepted"] }),
      }),
      { description: "One for each address in the envelope." },
    ),
  },
  { $id: "MailTaken" },
);
