import { AppError } from "../errors.ts";

const MB = 1_048_576;
const MAX_BODY_BYTES = MB;
const MAX_ROUTING_BODY_BYTES = 40 * MB;

/** The JSON body of a request, never more than the cap of its path in memory. */
export async function readJsonBody(request: Request): Promise<unknown> {
  const text = await readText(request, capOf(request));
  const type = request.headers.get("content-type") ?? "";
  if (text === "") throw badJson("The request has no body; send a JSON object.");
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(type))
    throw badJson("The body must be JSON: send the header Content-Type: application/json.");
  try {
    return JSON.parse(text);
  } catch {
    throw badJson("The body is not valid JSON.");
  }
}

function capOf(request: Request): number {
  return /\/v1\/messages\/?$/.test(new URL(request.url).pathname) ? MAX_ROUTING_BODY_BYTES : MAX_BODY_BYTES;
}

async function readText(request: Request, cap: number): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > cap) throw tooLarge(cap);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > cap) throw tooLarge(cap);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function tooLarge(cap: number): AppError {
  return new AppError("payload_too_large", `The request body is larger than ${cap / MB} MB.`);
}

function badJson(message: string): AppError {
  return new AppError("validation_error", message, {
    faults: [{ path: "body", code: "json_invalid", message }],
  });
}
