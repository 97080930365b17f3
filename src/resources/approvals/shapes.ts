import { t } from "elysia";
import { moment } from "../../http/shapes.ts";
import { STATUSES } from "./view.ts";

const id = t.String({ format: "uuid" });
const NONE = { examples: [null] };

export const approvalStatus = t.Union(
  STATUSES.map((name) => t.Literal(name)),
  {
    description:
      "`approved`: the call is being made; `unknown`: it was begun, and nobody knows what came of it.",
  },
);

const hash = t.String({
  pattern: "^[0-9a-f]{64}$",
  description: "A digest of all that is consented to: the call, its arguments, the tool and where it is.",
  examples: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
});

/** What was shown to whoever consents is sent back, so that nobody consents to anything else. */
export const approveBody = t.Object({ hash });

export const ApprovalShape = t.Object(
  {
    id,
    inbox_id: id,
    message_id: t.String({ format: "uuid", description: "The message whose run wanted the call." }),
    run_id: t.Nullable(t.String({ format: "uuid", description: "The message that answers it." }), NONE),
    target: t.String({ examples: ["mcp:calendar"] }),
    tool: t.String({ examples: ["create_event"] }),
    arguments: t.Record(t.String(), t.Unknown(), {
      description: "As they would be sent.",
      examples: [{ title: "Lunch" }],
    }),
    shown: t.Nullable(
      t.String({
        description:
          "The arguments as people read them: whole, with every hidden character written out; null where they cannot be read any more.",
        examples: ["title: Lunch"],
      }),
    ),
    changes: t.Nullable(
      t.String({
        description:
          "What would differ from the values that the server itself had answered for the same item earlier in that run; null where nothing is known of that. By now it may be otherwise there.",
        examples: ["title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch"],
      }),
    ),
    hash,
    cause: t.Union([t.Literal("boundary"), t.Literal("marked"), t.Literal("flag")], {
      description:
        "Why it waits: the instruction does not allow it by itself, its tool is marked as one to ask about (`ask_tools` of the connection), or the instruction has `--ask`.",
    }),
    read_others: t.Boolean({
      description: "Whether the model had read words of others when it wanted the call.",
    }),
    status: approvalStatus,
    outcome: t.Nullable(t.String({ description: "What the tool answered, or why it was not called." }), NONE),
    sender: t.Nullable(t.String({ description: "Whose mail the run worked on; null for a call over HTTP." })),
    subject: t.Nullable(t.String()),
    expires_at: moment("Until when it can be allowed"),
    decided_at: t.Nullable(moment("When it was allowed or refused"), NONE),
    created: moment("When it was made"),
  },
  {
    $id: "Approval",
    description: "A call of a tool that was not made, as it waits for the consent of the account's owner.",
  },
);
