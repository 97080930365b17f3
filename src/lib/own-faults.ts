import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { member } from "./foreign-json.ts";

/** Too many open files: of this process, and of the machine. */
const CODES = new Set(["EMFILE", "ENFILE"]);
const MAX_CAUSES = 8;
/** Codes by which the system, the resolver and the runtime say that nobody was reached. */
const UNREACHED = new Set(["ECONNREFUSED", "ENOTFOUND", "ENODATA", "EAI_AGAIN", "ESERVFAIL"]);
/** With fewer free handles than this there was most likely none a moment ago. */
const SPARE = 8;
/** Handles that have to be free for a thread to start: one that finds none then ends the whole process. */
const THREAD_SPARE = 32;

/** A fault of this machine, whoever it was met on the way to. */
export class NoHandlesError extends Error {
  readonly code: "EMFILE" | "EAGAIN" = "EMFILE";

  constructor(cause?: unknown, message = "EMFILE: this server has too many files and connections open") {
    super(message, { cause });
    this.name = "NoHandlesError";
  }
}

/** The same of a thread or a program that could not be started: the system, or its limit for this server, lets none more run. */
export class NoTasksError extends NoHandlesError {
  override readonly code = "EAGAIN";

  constructor(cause?: unknown) {
    super(cause, "EAGAIN: this server can start no more threads and programs");
    this.name = "NoTasksError";
  }
}

/** Throws NoTasksError for what the system says where it starts no more programs, and NoHandlesError where a handle lacked. */
export function refuseOwnSpawnFault(error: unknown): void {
  if (isOutOfHandles(error)) throw new NoHandlesError(error);
  if (member(error, "code") === "EAGAIN") throw new NoTasksError(error);
}

/** What the system said when the files of mails were to be used, with its code: whatever it is, no mail is at fault. */
export class MailFilesError extends Error {
  readonly code: string;

  constructor(cause: Error & { code: string }) {
    super(cause.message, { cause });
    this.name = "MailFilesError";
    this.code = cause.code;
  }
}

/** Does `work` on the files of mails; throws MailFilesError for what the system says, and anything else as it is. */
export async function onMailFiles<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isSystemError(error) ? new MailFilesError(error) : error;
  }
}

function isSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && "errno" in error && typeof member(error, "code") === "string";
}

/** Whether an error says, itself or in one of its causes, that no file handle was left. */
export function isOutOfHandles(error: unknown): boolean {
  return codesOf(error).some((code) => CODES.has(code));
}

/** Whether an error, or one of its causes, is a NoTasksError. Its code says as much of a pipe that is full. */
export function isOutOfTasks(error: unknown): boolean {
  return withCauses(error).some((cause) => cause instanceof NoTasksError);
}

/**
 * Throws NoHandlesError if it was this machine that kept us from reaching others, and not they. The code alone does not say
 * so: where no handle is left for a socket, the runtime says of many that they refused the connection, or have no name.
 * `unreached`: nobody has been sent anything, whatever the code.
 */
export function refuseOwnFault(error: unknown, { unreached = false } = {}): void {
  const codes = codesOf(error);
  const may_be_ours = unreached || codes.some((code) => UNREACHED.has(code));
  if (codes.some((code) => CODES.has(code)) || (may_be_ours && !canOpen(SPARE)))
    throw new NoHandlesError(error);
}

/** Throws NoHandlesError where the next connection would most likely find no handle. */
export function refuseWithoutHandles(): void {
  if (!canOpen(SPARE)) throw new NoHandlesError();
}

/** Throws NoHandlesError where a thread would not find what it needs. */
export function refuseThread(): void {
  if (!canOpen(THREAD_SPARE)) throw new NoHandlesError();
}

/** The codes of an error and of its causes. */
function codesOf(error: unknown): string[] {
  return withCauses(error).map((cause) => String(member(cause, "code")));
}

function withCauses(error: unknown): unknown[] {
  const causes: unknown[] = [];
  let cause = error;
  while (causes.length < MAX_CAUSES && cause !== undefined && cause !== null) {
    causes.push(cause);
    cause = member(cause, "cause");
  }
  return causes;
}

function canOpen(handles: number): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < handles) opened.push(openSync(devNull, "r"));
    return true;
  } catch (error) {
    return !isOutOfHandles(error);
  } finally {
    for (const handle of opened) closeSync(handle);
  }
}
