import { supervisor } from "../config/config.ts";
import { messageOf } from "../errors.ts";
import { openServiceManager, type ServiceManager } from "../lib/service-manager.ts";
import type { Server } from "../serve.ts";

/** Tells systemd, if it started this process, that the server is up, and from then on that it is well. */
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
 * A sign of life as long as this thread has its turn and the checks answer, be it with "the disk is full": of that a
 * restart cures nothing, and the server heals by itself when there is room. From one that hangs nothing is heard.
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
