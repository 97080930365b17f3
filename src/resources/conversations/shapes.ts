import { moment } from "../../http/shapes.ts";
import { t } from "elysia";
import { activityStatus, AttachmentShape, CommandShape, replyStatus, source } from "../messages/shapes.ts";

const subject = (what: string) => t.String({ description: what, examples: ["Minutes of Monday"] });

const head = {
  id: t.String({ format: "uuid" }),
  inbox_id: t.Nullable(t.String({ format: "uuid", description: "Null once the inbox has been deleted." })),
  turn_count: t.Integer({ minimum: 0, description: "Turns that have a reply.", examples: [2] }),
  last_at: moment("When the last reply was made"),
  created: moment("When it began"),
};

export const ConversationShape = t.Object(
  {
    ...head,
    subject: subject("The subject of its first message."),
    latest_sender: t.Nullable(
      t.String({
        description: "Who wrote the message of the last reply; null for a call.",
        examples: ["ada@example.com"],
      }),
    ),
    snippet: t.String({
      description: "The beginning of the last reply, 200 characters at most, as plain text.",
      examples: ["Three points were decided."],
    }),
    latest_status: t.Nullable(activityStatus, {
      description: "What became of its newest message; null while it has none.",
    }),
    latest_reply_status: t.Nullable(replyStatus, {
      description: "The state of the mail that answers the newest message, as `reply_status` there.",
    }),
  },
  { $id: "Conversation" },
);

const TurnShape = t.Object(
  {
    message_id: t.String({ format: "uuid" }),
    created: moment("When the message was accepted"),
    source,
    sender: t.Nullable(t.String({ examples: ["ada@example.com"] })),
    instruction: t.String({
      description: "Empty if the sender may not instruct: what such a mail says is content.",
      examples: ["Summarise this"],
    }),
    command: t.Nullable(CommandShape),
    reply: t.String({ examples: ["Three points were decided."] }),
    status: activityStatus,
    error: t.Nullable(t.String({ examples: ["The model did not answer in time."] })),
    attachments: t.Array(AttachmentShape, { description: "Files that the run produced." }),
  },
  { $id: "Turn", description: "A message and what came of it." },
);

export const ConversationDetailShape = t.Object(
  {
    ...head,
    subject: subject("The subject of its first message; empty if that one's sender may not instruct."),
    turns: t.Array(TurnShape, {
      description: "The newest 200, or fewer long ones, the oldest of them first.",
    }),
  },
  { $id: "ConversationDetail" },
);
