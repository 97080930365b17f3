import type { InboxRow } from "../../../db/schema.ts";
import { storedJson } from "../../../lib/stored-json.ts";
import type { RuleBody } from "./rule-shapes.ts";

export const FIELDS = [
  "sender",
  "tag",
  "subject",
  "header",
  "files",
  "size",
  "authority",
  "time",
  "text",
] as const;
export const FILE_KINDS = [
  "any",
  "pdf",
  "picture",
  "document",
  "table",
  "calendar",
  "archive",
  "mail",
] as const;
export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export const AUTHORITIES = ["owner", "listed", "stranger", "unauthenticated"] as const;
export const FORMATS = ["text", "markdown", "html", "json", "csv"] as const;
export const ATTACH_TYPES = ["md", "txt", "csv", "html", "json"] as const;
export const MAX_RULES = 50;

export type Field = (typeof FIELDS)[number];
export type FileKind = (typeof FILE_KINDS)[number];

/** One condition as it is stored: what its field has no use for is empty. */
export interface Condition {
  field: Field;
  is: string[];
  contains: string[];
  /** The name of a header field, in lower case. */
  name: string;
  over_bytes: number | null;
  under_bytes: number | null;
  days: string[];
  /** "HH:MM", or "". */
  from: string;
  to: string;
  /** An IANA name; "" for the time zone of the account. */
  zone: string;
  not: boolean;
}

/** What a rule has done with a message that it is for. */
export type Actions = RuleBody["do"];

/** A rule as it is stored. */
export interface Rule {
  name: string;
  enabled: boolean;
  match: "all" | "any";
  when: Condition[];
  /** What the model is asked as the last condition; null: nothing. */
  question: string | null;
  do: Actions;
}

/**
 * Returns the rules of an inbox, in their order; null where a damaged disk has left some that cannot be read. Without
 * them mail would be worked on that they leave out.
 */
export function storedRules({ rules }: Pick<InboxRow, "rules">): Rule[] | null {
  if (rules === "[]") return [];
  const stored = storedJson<unknown>(rules, null);
  return Array.isArray(stored) && stored.every(isRule) ? stored : null;
}

/** The same for whoever shows them, or tries them. */
export function rulesOf(inbox: Pick<InboxRow, "rules">): Rule[] {
  return storedRules(inbox) ?? [];
}

function isRule(value: unknown): value is Rule {
  const { name, when, do: acts } = (value ?? {}) as Partial<Record<keyof Rule, unknown>>;
  return typeof name === "string" && Array.isArray(when) && typeof acts === "object" && acts !== null;
}

/** A rule as its owner reads it: a condition has only the members that its field uses. */
export function viewRule({ when, ...rule }: Rule): RuleBody {
  return { ...rule, when: when.map(viewCondition) };
}

function viewCondition({ field, not, ...rest }: Condition): RuleBody["when"][number] {
  const said = Object.entries(rest).filter(
    ([, value]) => value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
  return { field, ...Object.fromEntries(said), ...(not ? { not } : {}) };
}
