import { ValueErrorType } from "@sinclair/typebox/errors";
import type { ValidationError } from "elysia";
import { AppError, type FieldFault } from "../errors.ts";
import { EXAMPLE_SECOND, LAST_SECOND } from "./shapes.ts";
import { badJson } from "./json-text.ts";

const MAX_FAULTS = 20;
/** The most members of an object that a sentence names. */
const MAX_MEMBERS = 5;

interface SchemaFault {
  type: ValueErrorType;
  path: string;
  message: string;
  value: unknown;
  schema: {
    title?: string;
    maxLength?: number;
    minLength?: number;
    maximum?: number;
    minimum?: number;
    format?: string;
    /** Whatever has a pattern has one. */
    examples?: unknown[];
    minItems?: number;
    maxItems?: number;
    properties?: Record<string, unknown>;
    const?: unknown;
    anyOf?: { const?: unknown; type?: string }[];
  };
  /** The faults of a union: one iterator for each branch. */
  errors?: { First: () => SchemaFault | undefined }[];
}

/** Returns an error with one fault for each invalid field. Never repeats the values. */
export function faultsOf(error: ValidationError): AppError {
  const faults: FieldFault[] = [];
  for (const fault of (error.all as unknown as SchemaFault[]).map(innermost)) {
    if (error.type === "body" && fault.path === "")
      return badJson("The request has no body; send a JSON object.");
    const path = placeOf(error, fault);
    if (faults.length < MAX_FAULTS && !faults.some((known) => known.path === path))
      faults.push({ path, ...explain(fault) });
  }
  const detail = faults.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new AppError("validation_error", `${detail || "The request is not valid"}.`, { faults });
}

function placeOf(error: ValidationError, fault: SchemaFault): string {
  // Elysia validates numbers in the query separately and loses their names, so the schema's title holds the name.
  if (error.type === "property") return `query.${fault.schema.title}`;
  return `${error.type === "params" ? "path" : error.type}${fault.path.replaceAll("/", ".")}`;
}

interface Explained {
  code: string;
  message: string;
}

function explain(fault: SchemaFault): Explained {
  if (fault.value === undefined) return { code: "missing", message: "is required" };
  if (fault.type === ValueErrorType.Union) return explainChoice(fault.schema);
  return EXPLANATIONS[fault.type]?.(fault.schema) ?? { code: "invalid", message: plainSentence(fault) };
}

const tooSmall = ({ minimum }: SchemaFault["schema"]): Explained => ({
  code: "too_small",
  message: `must be at least ${minimum}`,
});
const tooLarge = ({ maximum }: SchemaFault["schema"]): Explained => ({
  code: "too_large",
  message: `must be at most ${maximum}`,
});

const EXPLANATIONS: { [type in ValueErrorType]?: (schema: SchemaFault["schema"]) => Explained } = {
  [ValueErrorType.StringMinLength]: ({ minLength }) => ({
    code: "too_short",
    message: minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters`,
  }),
  [ValueErrorType.StringMaxLength]: ({ maxLength }) => ({
    code: "too_long",
    message: `must have at most ${maxLength} characters`,
  }),
  [ValueErrorType.ArrayMinItems]: ({ minItems }) => ({
    code: "too_few",
    message: minItems === 1 ? "must not be empty" : `must have at least ${minItems} entries`,
  }),
  [ValueErrorType.ArrayMaxItems]: ({ maxItems }) => ({
    code: "too_many",
    message: `must have at most ${maxItems} entries`,
  }),
  [ValueErrorType.NumberMinimum]: tooSmall,
  [ValueErrorType.IntegerMinimum]: tooSmall,
  [ValueErrorType.NumberMaximum]: tooLarge,
  [ValueErrorType.IntegerMaximum]: tooLarge,
  [ValueErrorType.StringFormat]: ({ format = "" }) => ({
    code: "invalid_format",
    message: FORMS[format] ?? "has the wrong form",
  }),
  [ValueErrorType.StringPattern]: ({ examples }) => ({
    code: "invalid",
    message: `has the wrong form: write it like ${String(examples?.[0])}`,
  }),
  [ValueErrorType.Literal]: ({ const: only }) => ({
    code: "unknown_value",
    message: `can only be ${JSON.stringify(only)}`,
  }),
  [ValueErrorType.Kind]: () => ({ code: "not_a_file", message: "must be one file" }),
};

const FORMS: Record<string, string> = { uuid: "must be an id (a UUID)" };

/** Returns a sentence in place of TypeBox's "Expected string". */
function plainSentence({ message, schema: { properties = {} } }: SchemaFault): string {
  const kind = /^Expected (string|boolean|integer|number|array|object)\b/.exec(message)?.[1];
  if (kind === undefined) return "has the wrong form";
  const members = kind === "object" ? Object.keys(properties).slice(0, MAX_MEMBERS) : [];
  const such = members.length === 0 ? "" : ` with members such as ${members.join(", ")}`;
  return `must be ${/^[aio]/.test(kind) ? "an" : "a"} ${kind}${such}`;
}

/** Returns the fault to report: for a nullable member, the fault of its non-null branch. */
function innermost(fault: SchemaFault): SchemaFault {
  const inner = fault.schema.anyOf?.at(-1)?.type === "null" ? fault.errors?.[0]?.First() : undefined;
  return inner === undefined ? fault : innermost(inner);
}

const MOMENT = `must be a moment in whole seconds since 1970 in UTC, such as ${EXAMPLE_SECOND} for ${new Date(EXAMPLE_SECOND * 1_000).toISOString().replace(".000", "")}; \`date -d yesterday +%s\` prints one`;

function explainChoice({ anyOf = [], minimum, maximum }: SchemaFault["schema"]): Explained {
  if (maximum === LAST_SECOND) return { code: "invalid", message: MOMENT };
  if (maximum !== undefined)
    return { code: "invalid", message: `must be a whole number from ${minimum} to ${maximum}` };
  return {
    code: "unknown_value",
    message: `must be one of ${anyOf.map((choice) => String(choice.const)).join(", ")}`,
  };
}
