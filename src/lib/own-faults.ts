import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { member } from "./foreign-json.ts";

/** Error codes for too many open files: in this process, and on the machine. */
const CODES = new Set(["EMFILE", "ENFILE"]);
const MAX_CAUSES = 8;
/** Error codes of the system, the resolver and the runtime for a peer that was not reached. */
const UNREACHED = new Set(["ECONNREFUSED", "ENOTFOUND", "ENODATA", "EAI_AGAIN", "ESERVFAIL"]);
/** With fewer free handles than this, there was most likely none a moment ago. */
const SPARE = 8;
/** Free handles that the start of a thread needs: without them Bun ends the whole process. */
const THREAD_SPARE = 32;

/** Thrown when this machine has no file handle left, so that no peer is blamed for it. */
export class NoHandlesError extends Error {
  readonly code: "EMFILE" | "EAGAIN" = "EMFILE";

  constructor(cause?: unknown, message = "EMFILE: this server has too many files and connections open") {
    super(message, { cause });
    this.name = "NoHandlesError";
  }
}

/** Thrown when a thread or a program could not be started: the system, or its limit for this server, allows no more. */
export class NoTasksError extends NoHandlesError {
  override readonly code = "EAGAIN";

  constructor(cause?: unknown, message = "EAGAIN: this server can start no more threads and programs") {
    super(cause, message);
    this.name = "NoTasksError";
  }
}

/**
 * Rethrows a failed start of a program as NoTasksError, or as NoHandlesError where a file handle was missing. Returns
 * for any other error.
 */
export function refuseOwnSpawnFault(error: unknown): void {
  if (isOutOfHandles(error)) throw new NoHandlesError(error);
  if (member(error, "code") === "EAGAIN") throw new NoTasksError(error);
}

/** Thrown for an error of the file system in the mail files, with its code: no mail is at fault. */
export class MailFilesError extends Error {
  readonly code: string;

  constructor(cause: Error & { code: string }) {
    super(cause.message, { cause });
    this.name = "MailFilesError";
    this.code = cause.code;
  }
}

/** Returns the error for a disk that hangs where others fail. */
export function noAnswer(dir: string): MailFilesError {
  const cause = new Error(`ETIMEDOUT: the disk of ${dir} does not answer`);
  return new MailFilesError(Object.assign(cause, { code: "ETIMEDOUT" }));
}

/** Runs `work` on the mail files. Throws MailFilesError for errors of the system, and any other error as it is. */
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

/** Returns whether an error or one of its causes says that no file handle was left. */
export function isOutOfHandles(error: unknown): boolean {
  return codesOf(error).some((code) => CODES.has(code));
}

/**
 * Returns whether an error or one of its causes is a NoTasksError. EAGAIN alone would not tell: a full pipe has the
 * same code.
 */
export function isOutOfTasks(error: unknown): boolean {
  return withCauses(error).some((cause) => cause instanceof NoTasksError);
}

/**
 * Throws NoHandlesError if a connection failed because of this machine, not the peer. The code alone does not tell:
 * without a handle for a socket, the runtime reports many failures as a refused connection or an unknown name.
 * `unreached` says that nothing was sent, whatever the code.
 */
export function refuseOwnFault(error: unknown, { unreached = false } = {}): void {
  const codes = codesOf(error);
  const may_be_ours = unreached || codes.some((code) => UNREACHED.has(code));
  if (codes.some((code) => CODES.has(code)) || (may_be_ours && !canOpen(SPARE)))
    throw new NoHandlesError(error);
}

/** Throws NoHandlesError if the next connection would most likely get no handle. */
export function refuseWithoutHandles(): void {
  if (!canOpen(SPARE)) throw new NoHandlesError();
}

/** Throws NoHandlesError if too few handles are free for starting a thread. */
export function refuseThread(): void {
  if (!canOpen(THREAD_SPARE)) throw new NoHandlesError();
}

/** Returns the codes of an error and of its causes. */
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
