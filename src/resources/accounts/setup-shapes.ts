import { t } from "elysia";
import { MeShape } from "./shapes.ts";

export const SetupShape = t.Object(
  { needed: t.Boolean({ description: "Whether nobody has an account here yet." }) },
  { $id: "Setup" },
);

export const ServerShape = t.Object(
  {
    version: t.String({ description: "The version of the program.", examples: ["0.1.0"] }),
    base_url: t.String({
      description: "Where people reach it. With https the cookie that signs in is for https alone.",
      examples: ["https://mail.example.com"],
    }),
    registration: t.Union([t.Literal("open"), t.Literal("closed")], {
      description: "Whether a stranger can get an account.",
    }),
    domain: t.String({ description: "The domain of inbox addresses.", examples: ["mail.example.com"] }),
    chosen_addresses: t.Union([t.Literal("own_domains"), t.Literal("everywhere")], {
      description: "Where the whole address of an inbox may be chosen (`local_part` of `POST /inboxes`).",
    }),
    outbound_mode: t.Union([t.Literal("capture"), t.Literal("relay"), t.Literal("direct")], {
      description: "How mail leaves; with `capture` it does not, and login codes are in the log.",
    }),
    payments: t.Boolean({ description: "Whether plans and credits can be bought here." }),
    needs_setup: t.Boolean({ description: "As in `GET /setup`." }),
  },
  { $id: "Server", description: "What anybody may know of this server." },
);

export const SignedInShape = t.Object(
  { me: t.Nullable(MeShape) },
  {
    $id: "SignedIn",
    description: "The account whose credential came along; null where the session or key is not valid.",
  },
);
