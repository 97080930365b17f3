import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { OpenApiDocument } from "../../src/http/openapi.ts";
import type { Json } from "../../src/http/openapi-schema.ts";

/** What the server said, as far as the document speaks of it. */
interface Said {
  method: string;
  path: string;
  status: number;
  content_type: string;
  body: unknown;
}

export interface Contract {
  /** Throws when an answer is not as the document describes it. */
  check(said: Said): void;
}

/** Holds answers against the document; members that it does not name are faults too. */
export function contractOf(document: OpenApiDocument): Contract {
  const closed = closeObjects(document) as OpenApiDocument;
  const places = placesOf(closed);
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  formats.default(ajv);
  ajv.addSchema(closed, "doc");
  const compiled = new Map<string, ValidateFunction>();
  const validator = (pointer: string): ValidateFunction => {
    const known = compiled.get(pointer) ?? ajv.compile({ $ref: `doc#${pointer}` });
    compiled.set(pointer, known);
    return known;
  };
  const fail = (said: Said, why: string): never => {
    throw new Error(
      `${said.method} ${said.path} answered ${said.status}, but ${why}: ${JSON.stringify(said.body)}`,
    );
  };
  const checkBody = (said: Said, pointer: string, body = said.body): void => {
    const validate = validator(pointer);
    if (!validate(body)) fail(said, ajv.errorsText(validate.errors));
  };
  /** What every object may have beside what it is. */
  const checkWarned = (said: Said, pointer: string): void => {
    const { warnings, ...body } = said.body as Json;
    checkBody(said, `${pointer}/allOf/0`, body);
    if (warnings !== undefined) checkBody(said, "/components/schemas/Warnings", warnings);
  };
  /** A path or a method that the document does not know is refused as everything is. */
  const checkProblem = (said: Said): void => {
    if (typeOf(said) !== "application/problem+json") fail(said, "an error must be problem+json");
    checkBody(said, "/components/schemas/Problem");
  };
  return {
    check(said) {
      const place = placeOf(places, said);
      if (place === undefined) {
        if (said.status >= 400) checkProblem(said);
        return;
      }
      const responses = place.operation["responses"] as Record<string, Json>;
      const response = responses[said.status] ?? fail(said, "the document knows no such status here");
      const content = response["content"] as Record<string, { schema: Json }> | undefined;
      const type = typeOf(said);
      if (content === undefined) {
        if (said.body !== "" && said.body !== undefined) fail(said, "the document says there is no body");
        return;
      }
      if (Object.values(content).every(({ schema }) => schema["format"] === "binary")) return;
      if (content[type] === undefined) fail(said, `the document knows no ${type} here`);
      const parts = ["responses", String(said.status), "content", type, "schema"].map(escapePointer);
      const is_warned = content[type]?.schema["allOf"] !== undefined;
      (is_warned ? checkWarned : checkBody)(said, `${place.pointer}/${parts.join("/")}`);
    },
  };
}

function typeOf({ content_type }: Said): string {
  return content_type.split(";")[0] ?? "";
}

interface Place {
  form: RegExp;
  template: string;
  operations: Record<string, Json>;
}

function placesOf(document: OpenApiDocument): Place[] {
  return Object.entries(document.paths)
    .sort(mostSpecificFirst)
    .map(([template, operations]) => ({
      form: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
      template,
      operations,
    }));
}

function placeOf(places: Place[], { method, path }: Said): { operation: Json; pointer: string } | undefined {
  const wanted = path.split("?")[0]?.replace(/(.)\/$/, "$1") ?? "";
  const verb = method.toLowerCase();
  for (const { form, template, operations } of places) {
    const operation = operations[verb];
    if (operation && form.test(wanted))
      return { operation, pointer: `/paths/${escapePointer(template)}/${verb}` };
  }
  return undefined;
}

function mostSpecificFirst([a]: [string, unknown], [b]: [string, unknown]): number {
  return (a.match(/\{/g)?.length ?? 0) - (b.match(/\{/g)?.length ?? 0);
}

export function closeObjects(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closeObjects);
  if (typeof part !== "object" || part === null) return part;
  // Beside the first of such a choice stands what comes on top of it.
  const closed = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      name === "allOf" ? [closeObjects(value[0]), ...value.slice(1)] : closeObjects(value),
    ]),
  );
  return closed["type"] === "object" &&
    closed["properties"] !== undefined &&
    !("additionalProperties" in closed)
    ? { ...closed, additionalProperties: false }
    : closed;
}

/** RFC 6901, inside of a URI fragment. */
export function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
}
