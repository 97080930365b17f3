import { supervisor } from "../config/config.ts";
import { messageOf } from "../errors.ts";
import { openServiceManager, type ServiceManager } from "../lib/service-manager.ts";
import type { Server } from "../serve.ts";

/** Tells systemd, if it started this process, that the server is up, and regularly that it is well. */
export async function reportToManager(server: Server): Promise<{ stopping: () => void }> {
  const told = supervisor();
  if (!told) return { stopping: () => undefined };
  try {
    const manager = await openServiceManager(told.socket);
    manager.tell(`READY=1\nSTATUS=${statusOf([])}`);
    const timer = told.watchdog_ms === null ? undefined : watch(server, manager, told.watchdog_ms / 2);
    return {
      stopping() {
        clearInterval(timer);
        manager.tell("STOPPING=1\nSTATUS=Finishing the work in progress");
      },
    };
  } catch (error) {
    server.app.log.error(`systemd cannot be told that the server is up: ${messageOf(error)}`);
    return { stopping: () => undefined };
  }
}

/**
 * Sends a watchdog message while this thread runs and the checks answer, even with "the disk is full": a restart would
 * not help, and the server recovers by itself when there is room. A server that hangs sends none.
 */
function watch(server: Server, manager: ServiceManager, every_ms: number): NodeJS.Timeout {
  let asking = false;
  return setInterval(async () => {
    if (asking) return;
    asking = true;
    manager.tell(await signOfLife(server));
    asking = false;
  }, every_ms);
}

async function signOfLife(server: Server): Promise<string> {
  try {
    const faults = Object.values(await server.ready()).filter((verdict) => verdict !== "ok");
    return `WATCHDOG=1\nSTATUS=${statusOf(faults)}`;
  } catch (error) {
    return `STATUS=${statusOf([messageOf(error)])}`;
  }
}

function statusOf(faults: string[]): string {
  return faults.length === 0 ? "Taking mail" : faults.join("; ").replaceAll("\n", " ");
}
