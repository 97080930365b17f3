import { t } from "elysia";
import { RunShape } from "../messages/shapes.ts";
import { budget } from "../billing/budget-shapes.ts";
import { actsShape, rulesShape } from "./rules/rule-shapes.ts";
import { moment } from "../../http/shapes.ts";

const ids = (what: string) => t.Array(t.String({ format: "uuid" }), { description: what });

const ScopeShape = t.Object(
  {
    targets: t.Nullable(
      t.Array(t.String({ examples: ["notes"] }), {
        description: "What the inbox may use; an empty list is the model alone, null is everything.",
      }),
    ),
    autonomous: t.Array(t.String(), {
      description: "Targets whose writing tools may run on untrusted mail without being named.",
      examples: [[]],
    }),
  },
  { $id: "Scope" },
);

const InboundPolicyShape = t.Object(
  {
    reply_to_unauthenticated: t.Boolean({
      description: "Answer strangers whose address could not be authenticated.",
      examples: [false],
    }),
    process_bulk: t.Boolean({
      description: "Route newsletters and other bulk mail, without an answer.",
      examples: [false],
    }),
    process_unauthenticated: t.Boolean({
      description:
        "Work on mail of strangers whose address could not be authenticated. Off, it is refused: anybody can send such mail in any name, and each costs a run. Who turns `reply_to_unauthenticated` on has it worked on as well.",
      examples: [false],
    }),
  },
  { $id: "InboundPolicy" },
);

export const InboxShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    label: t.String({ examples: ["Reports"] }),
    address: t.String({ examples: ["reports-k3m9x2abcdef@mail.example.org"] }),
    local_part: t.String({ examples: ["reports-k3m9x2abcdef"] }),
    prefix: t.Nullable(t.String({ description: "The readable part of the address.", examples: ["reports"] })),
    domain: t.String({ examples: ["mail.example.org"] }),
    domain_id: t.Nullable(
      t.String({
        format: "uuid",
        description: "The custom domain of the address; null for the service's own.",
      }),
    ),
    default_connection_id: t.Nullable(t.String({ format: "uuid", description: "The model connection." })),
    mcp_connection_ids: ids("Tool servers it may use."),
    context_ids: t.Nullable(
      ids(
        "The contexts that it has, and the only ones that a stranger's mail gets. Null: those for every inbox, and those that name this one (`inbox_ids` of a context), of which a stranger's mail gets only the latter.",
      ),
    ),
    reply_enabled: t.Boolean(),
    allowlist_senders: t.Array(t.String({ examples: ["bob@example.com"] }), {
      description:
        "Who may write: addresses, domains (`@example.com`) and subdomains (`@*.example.com`). Empty: everybody, but only the owner commands.",
    }),
    scope: t.Nullable(ScopeShape),
    inbound_policy: InboundPolicyShape,
    retention_days: t.Nullable(
      t.Integer({
        description: "How long content is kept; null: as the server and the plan say.",
        examples: [30],
      }),
    ),
    paused: t.Nullable(
      t.Union([t.Literal("keep"), t.Literal("refuse")], {
        description:
          "`keep`: new mail is taken and waits until the inbox goes on; `refuse`: the sender's server is told to try again later (450), and most give up after days. Either way nothing is begun, calls get 409 `inbox_paused`, and what is under way goes on. Null: it is not paused.",
        examples: [null],
      }),
    ),
    default_instruction: t.Nullable(
      t.String({
        description:
          "What is to be done with mail whose own words ask for nothing, such as one that was only forwarded. Mail of strangers never asks for anything that counts, so it holds for all of theirs; there it is plain words: no tools, and no commands.",
        examples: ["Summarise it in three points"],
      }),
    ),
    rules: rulesShape,
    rules_version: t.String({
      description:
        "Changes with the rules. Send it along with new ones, so that what somebody else has saved meanwhile is not replaced.",
      examples: ["4f53cda18c2baa0c"],
    }),
    monthly_budget: budget,
    enabled: t.Boolean({
      description:
        "False for the newest ones beyond what your plan allows: they keep their address, but their mail is not worked on, and they cannot be changed.",
    }),
    is_default: t.Boolean({
      description: "Whether calls that name no inbox go to it. The oldest is, until you choose another.",
    }),
    routed: t.Boolean({ description: "Whether there is a model to work on its mail." }),
    problem: t.Nullable(
      t.String({
        description: "What keeps it from its work, and how that is mended; null while all is well.",
        examples: [null],
      }),
    ),
    created: moment("When it was made"),
    updated: moment("When it was last changed"),
  },
  { $id: "Inbox" },
);

export const InboxActivityShape = t.Object(
  {
    inbox_id: t.String({ format: "uuid" }),
    mails: t.Integer({ minimum: 0, description: "Mails that came since then." }),
    waiting: t.Integer({ minimum: 0, description: "Messages that wait, or are being worked on." }),
    last_failure: t.Nullable(
      t.Object({
        message_id: t.String({ format: "uuid" }),
        error: t.String({ examples: ["The model did not answer in time."] }),
        created: moment("When the message was accepted"),
      }),
      { description: "What failed last, unless a message that came after it is done." },
    ),
  },
  { $id: "InboxActivity" },
);

export const CardSentShape = t.Object(
  {
    sent: t.Literal(true, {
      description: "It is about to leave; whether it arrives shows in the outgoing mail of the server.",
    }),
    to: t.String({ examples: ["ada@example.com"] }),
  },
  { $id: "CardSent" },
);

export const InboxTestShape = t.Composite(
  [
    RunShape,
    t.Object({
      reply: t.Object({
        to: t.String({ examples: ["ada@example.com"] }),
        subject: t.String({ examples: ["Re: Test mail"] }),
        delivered: t.Boolean({ description: "Whether it has been handed over; `reply_status` says more." }),
      }),
    }),
  ],
  { $id: "InboxTest", description: "What became of the test mail, and the answer that was mailed to you." },
);

export const RulesTriedShape = t.Object(
  {
    items: t.Array(
      t.Object({
        message_id: t.String({ format: "uuid" }),
        subject: t.Nullable(t.String({ examples: ["Your invoice"] })),
        sender: t.Nullable(t.String({ examples: ["bob@example.com"] })),
        created: moment("When the mail was accepted"),
        rules: t.Array(t.String(), { description: "The rules that are for it.", examples: [["Invoices"]] }),
        becomes: t.Union(["worked_on", "skipped", "kept", "waits"].map((name) => t.Literal(name))),
        do: actsShape,
        asks: t.Array(t.String(), {
          description: "Questions that the model would be asked.",
          examples: [[]],
        }),
      }),
    ),
    unread: t.Integer({ minimum: 0, description: "Mails that could not be read any more.", examples: [0] }),
  },
  { $id: "RulesTried" },
);
