import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { createGathering, type Sent, sendInPieces } from "./pieces.ts";
import { NoTasksError, refuseOwnSpawnFault, refuseThread } from "./own-faults.ts";
import { COMPILED_ROOT, WORK } from "./worker.ts";

/** The file of the program that runs, on Linux, whatever has become of its path. */
const OWN_FILE = "/proc/self/exe";

/**
 * A process that works on inputs. Dispatches a MessageEvent `message` with each output, and `end` once it has ended, or
 * `killed` where the system or somebody has killed it: memory was short, and the input may not be to blame.
 */
export interface WorkerProcess extends EventTarget {
  pid: number;
  /**
   * Sends an input; its large arrays of bytes over `buffers` go piece by piece. Rejects for what cannot be sent; whether it
   * arrives is told by the output, or by the end.
   */
  send(input: unknown, buffers: ArrayBuffer[]): Promise<void>;
  /** Ends the process at once, whatever it does. */
  end(): void;
  ref(): void;
  unref(): void;
  /** NaN where the system does not tell. */
  residentBytes(): number;
}

/**
 * Starts this program once more to work with the module at `path`, relative to `src`. Unlike a thread it can be ended in
 * any state: the runtime ends no thread inside of a regular expression or of its own machine code. It has nothing of
 * this process, not even its environment, and ends with it. Throws NoHandlesError where it would get no handles, and
 * NoTasksError where the system allows no more processes.
 */
export function startProcess(path: string): WorkerProcess {
  refuseThread();
  const events = new EventTarget();
  const gather = createGathering((data) => events.dispatchEvent(new MessageEvent("message", { data })));
  let ended = false;
  const end = (): void => {
    ended = true;
    child.kill("SIGKILL");
  };
  const child = spawn([...program(), WORK, path], {
    onSent(sent) {
      if (ended) return;
      try {
        gather(sent);
      } catch {
        // Whatever sends what is no message is broken.
        end();
      }
    },
    onExit(signal) {
      const is_killed = signal === "SIGKILL" && !ended;
      ended = true;
      events.dispatchEvent(new Event(is_killed ? "killed" : "end"));
    },
  });
  const sendUnlessEnded = (sent: Sent): void => {
    if (!ended) child.send(sent);
  };
  return Object.assign(events, {
    pid: child.pid,
    send: (input: unknown, buffers: ArrayBuffer[]) => sendInPieces(sendUnlessEnded, input, buffers),
    end,
    ref: () => child.ref(),
    unref: () => child.unref(),
    residentBytes: () => residentBytesOf(child.pid),
  });
}

function spawn(
  command: string[],
  { onSent, onExit }: { onSent: (sent: Sent) => void; onExit: (signal: string | number | null) => void },
) {
  try {
    return Bun.spawn(command, {
      // What a list of processes shows: the command names no file that anybody knows.
      argv0: process.execPath,
      cwd: "/",
      // It ends with this process, also where that is killed while it computes. Machine code that the binary has inside is
      // unpacked where this process unpacks its own, and dates are read in the same zone.
      env: {
        BUN_FEATURE_FLAG_NO_ORPHANS: "1",
        TMPDIR: tmpdir(),
        TZ: Intl.DateTimeFormat().resolvedOptions().timeZone,
      },
      // What libraries say about a text may have parts of it.
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "advanced",
      ipc: onSent,
      onExit: (child) => onExit(child.signalCode),
    });
  } catch (error) {
    refuseOwnSpawnFault(error);
    throw new NoTasksError(error);
  }
}

/**
 * Returns the command that starts this program: the binary, or Bun with the sources. At the path of a binary that was
 * upgraded there is another one by now, which may not understand this one.
 */
function program(): string[] {
  const runtime = existsSync(OWN_FILE) ? OWN_FILE : process.execPath;
  if (import.meta.url.includes(COMPILED_ROOT)) return [runtime];
  return [runtime, fileURLToPath(new URL("../main.ts", import.meta.url))];
}

function residentBytesOf(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
    return Number(kilobytes) * 1_024;
  } catch {
    return Number.NaN;
  }
}
