import { ValueErrorType } from "@sinclair/typebox/errors";
import type { ValidationError } from "elysia";
import { AppError, type FieldFault } from "../errors.ts";

const MAX_FAULTS = 20;

interface SchemaFault {
  type: number;
  path: string;
  message: string;
  value: unknown;
  schema: { maxLength?: number; minLength?: number; maximum?: number; minimum?: number; maxItems?: number };
}

/** One fault per wrong field, in our words; the values themselves are never repeated. */
export function faultsOf(error: ValidationError): AppError {
  const faults: FieldFault[] = [];
  for (const fault of error.all as unknown as SchemaFault[]) {
    const path = `${placeOf(error)}${fault.path.replaceAll("/", ".")}`;
    if (faults.length < MAX_FAULTS && !faults.some((known) => known.path === path))
      faults.push({ path, ...explain(fault) });
  }
  const detail = faults.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new AppError("validation_error", `${detail || "The request is not valid"}.`, { faults });
}

function placeOf(error: ValidationError): string {
  return error.type === "params" ? "path" : String(error.type);
}

function explain({ type, schema, message, value }: SchemaFault): { code: string; message: string } {
  if (value === undefined) return { code: "missing", message: "is required" };
  switch (type) {
    case ValueErrorType.StringMinLength:
      return { code: "too_short", message: `must have at least ${schema.minLength} characters` };
    case ValueErrorType.StringMaxLength:
      return { code: "too_long", message: `must have at most ${schema.maxLength} characters` };
    case ValueErrorType.ArrayMaxItems:
      return { code: "too_many", message: `must have at most ${schema.maxItems} entries` };
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.IntegerMinimum:
      return { code: "too_small", message: `must be at least ${schema.minimum}` };
    case ValueErrorType.NumberMaximum:
    case ValueErrorType.IntegerMaximum:
      return { code: "too_large", message: `must be at most ${schema.maximum}` };
    case ValueErrorType.StringFormat:
      return { code: "invalid_format", message: "has the wrong form" };
    default:
      return {
        code: "invalid",
        message: `is not valid: ${message.charAt(0).toLowerCase()}${message.slice(1)}`,
      };
  }
}
