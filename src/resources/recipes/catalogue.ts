import type { NewContext } from "../contexts/shapes.ts";
import type { Plan } from "../../db/schema.ts";
import type { Scope } from "../../db/inbox-columns.ts";
import type { RuleBody } from "../inboxes/rules/rule-shapes.ts";
import type { InboundPolicy } from "../inboxes/settings.ts";
import { READING_RECIPES } from "./reading.ts";
import { WRITING_RECIPES } from "./writing.ts";

/** An inbox and the contexts it works by, ready to be made. */
export interface Recipe {
  id: string;
  title: string;
  description: string;
  category: "reading" | "writing" | "filing";
  /** The name of the picture that a dashboard shows. */
  icon: string;
  min_plan: Plan;
  /** Kinds of connections it works with; `llm` is any model. */
  requires: ("llm" | "notes" | "codehost-a" | "sheets")[];
  contexts: Required<Pick<NewContext, "title" | "slug" | "kind" | "body">>[];
  /**
   * A scope of null allows every tool. The default instruction is what a mail without words of its own asks for: most
   * recipes are used by forwarding alone, and the model would otherwise answer what is forwarded.
   */
  inbox: {
    label: string;
    scope: Scope | null;
    reply_enabled: boolean;
    default_instruction: string | null;
    inbound_policy?: Partial<InboundPolicy>;
    rules?: RuleBody[];
  };
  /** Has the inbox work through what came in, at these times. */
  schedule?: { title: string; instruction: string; every: string };
}

export const RECIPES: readonly Recipe[] = [...READING_RECIPES, ...WRITING_RECIPES];
