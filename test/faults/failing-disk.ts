import { existsSync } from "node:fs";
import { join } from "node:path";
import type { House, ServerProcess } from "./house.ts";

const LIBRARIES = ["/usr/lib/fiu/fiu_run_preload.so", "/usr/lib/fiu/fiu_posix_preload.so"];
const ERRNO = { EIO: 5, ENOSPC: 28, EROFS: 30 };

/** Why no call to the system can be made to fail here, or undefined. */
export function whyNoFaults(): string | undefined {
  return LIBRARIES.every((path) => existsSync(path)) && Bun.which("fiu-ctrl") !== null
    ? undefined
    : "no failing calls to the system without fiu-run: apt-get install fiu-utils";
}

interface Failing {
  /** Calls such as `io/sync/fsync` or `io/rw/pwrite*` fail from now on. */
  fail(call: string, errno: keyof typeof ERRNO): Promise<void>;
  heal(call: string): Promise<void>;
}

/**
 * Starts a server whose calls to the system can be made to fail at any moment. The number of requests is given, so that the
 * server does not begin anew: libfiu may wait for ever where a library is opened while threads begin, which happened at one
 * of 300 starts (its cache calls `strdup` under its lock, and looks that up under the lock that opening holds).
 */
export async function startOnFailingDisk(at: House): Promise<{ server: ServerProcess; disk: Failing }> {
  const pipe = join(at.dir, "..", "fiu");
  const server = await at.start({
    FIU_CTRL_FIFO: pipe,
    LD_PRELOAD: LIBRARIES.join(" "),
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
  });
  const control = async (command: string): Promise<void> => {
    const child = Bun.spawn(["fiu-ctrl", "-f", pipe, "-c", command, String(server.pid)], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    if ((await child.exited) !== 0 || said.join("") !== "") throw new Error(`fiu-ctrl: ${said.join(" ")}`);
  };
  return {
    server,
    disk: {
      fail: (call, errno) => control(`enable name=posix/${call},failinfo=${ERRNO[errno]}`),
      heal: (call) => control(`disable name=posix/${call}`),
    },
  };
}
