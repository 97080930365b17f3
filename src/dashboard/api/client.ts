import { forPeople } from "../../errors.ts";
import { noteReach } from "./reach.ts";

/** A refusal of the server: RFC 9457, with our `code`, `fix` and, for a form, one fault a field. */
export interface Problem {
  status: number;
  code: string;
  detail: string;
  fix?: string;
  errors?: FieldFault[];
  [member: string]: unknown;
}

/** A fault of one member of the body. */
export interface FieldFault {
  path: string;
  code: string;
  message: string;
}

/** A refusal by the server, or no answer at all (`status` 0). Its message is meant to be read by people. */
export class ApiError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = "ApiError";
    this.problem = problem;
  }
}

/** What the server finds wrong with a member of the body, such as `title`, or with an entry of a list in it. */
export const faultOf = (error: unknown) => (name: string) =>
  error instanceof ApiError
    ? error.problem.errors?.find(({ path }) => `${path}.`.startsWith(`body.${name}.`))
    : undefined;

/** Whether there is no such thing: the server knows none, or the address of the page has no whole id. */
export const isMissing = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.problem.status === 404 || error.problem.errors?.[0]?.path.startsWith("path.") === true);

const UNREACHABLE: Problem = {
  status: 0,
  code: "unreachable",
  detail: "The server did not answer.",
  fix: "See whether it is running and whether you are connected, then try again.",
};

interface Call {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> =>
  call<T>("GET", path, signal ? { signal } : {});
export const post = <T>(path: string, body?: unknown, headers?: Record<string, string>): Promise<T> =>
  call<T>("POST", path, { body, ...(headers ? { headers } : {}) });
export const patch = <T>(path: string, body: unknown): Promise<T> => call<T>("PATCH", path, { body });
export const remove = (path: string, body?: unknown): Promise<void> => call<void>("DELETE", path, { body });

/** A download, with its file name; `onCome` hears how many bytes there are so far. */
export async function bytesOf(path: string, onCome: (bytes: number) => void) {
  try {
    const response = await fetch(path);
    if (!response.ok || !response.body) throw new ApiError(problemOf(response, await response.text()));
    let come = 0;
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(part, controller) {
        onCome((come += part.length));
        controller.enqueue(part);
      },
    });
    const bytes = await new Response(response.body.pipeThrough(counter)).blob();
    const [, name = "download"] =
      /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "") ?? [];
    return { name, bytes };
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(UNREACHABLE);
  }
}

/** The answer of a call that goes on for a while, as its server-sent events come; each is JSON. */
export async function* eventsOf<T>(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<T> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal }).catch(
    () => undefined,
  );
  if (!response) throw new ApiError(UNREACHABLE);
  if (!response.ok || !response.body) throw new ApiError(problemOf(response, await response.text()));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw new ApiError(UNREACHABLE);
    });
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) yield JSON.parse(event.replace(/^data: /, "")) as T;
  }
}

/** The members that are set, as the query of an address. */
export function queryOf(members: Record<string, string | number | undefined>): URLSearchParams {
  const set = Object.entries(members).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(set.map(([name, value]) => [name, String(value)]));
}

/** One call with the session's cookie. `path` may have a query; a `FormData` is sent as the form it is. */
async function call<T>(method: string, path: string, { body, headers, signal }: Call): Promise<T> {
  const isForm = body instanceof FormData;
  const response = await fetch(path, {
    method,
    headers: {
      // What this page says wrongly is to be noticed.
      "mailwright-strict": "1",
      ...(body === undefined || isForm ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    noteReach(false);
    throw new ApiError(UNREACHABLE);
  });
  noteReach(!isFromBetween(response));
  const text = await response.text();
  if (!response.ok && !isResult(response, text)) throw new ApiError(problemOf(response, text));
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Over the credit cap a call is answered like any other that ended, and not with a problem. */
function isResult(response: Response, text: string): boolean {
  return response.status === 429 && !isProblem(response) && text.startsWith("{");
}

function isProblem(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").includes("problem+json");
}

/** Whether a proxy says that there is nobody behind it. */
function isFromBetween(response: Response): boolean {
  return [502, 503, 504].includes(response.status) && !isProblem(response);
}

function problemOf(response: Response, text: string): Problem {
  if (isProblem(response)) return JSON.parse(text, asPeopleRead) as Problem;
  const detail = `Something between here and the server answered ${response.status} instead of it.`;
  return { status: response.status, code: "unexpected", detail };
}

function asPeopleRead(_member: string, value: unknown): unknown {
  return typeof value === "string" ? forPeople(value) : value;
}
