import type { Context } from "../../api/shapes.ts";

/** When a context is used, by its kind. */
export const KINDS: Record<Context["kind"], { word: string; hint: string }> = {
  instruction: { word: "Always", hint: "Goes along with every mail and call to its inboxes." },
  knowledge: { word: "When it fits", hint: "Is looked up when a mail is about it, or named as +name." },
  command: {
    word: "Macro",
    hint: "Is called as $name. {{input}} in its text becomes what stands behind $name.",
  },
};

/** How a new context begins: kept from mail of strangers until somebody names an inbox that they may write to. */
export const NEW_CONTEXT: Pick<Context, "kind" | "inbox_ids"> = { kind: "instruction", inbox_ids: null };
