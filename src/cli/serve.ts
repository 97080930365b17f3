import { Command } from "commander";
import type { ConfigOverrides } from "../config.ts";
import { type Server, serve } from "../serve.ts";
import { CONFIG_OPTION, type CommonOptions, configOf } from "./options.ts";

const LOOPBACK = ["127.0.0.1/32", "::1/128"];

/** For a machine of one's own: mail from it is trusted, nothing leaves it, nobody else reaches it. */
const DEV: ConfigOverrides = {
  server: { listen: "127.0.0.1:8080" },
  smtp: { listen: "127.0.0.1:2525", trusted_networks: LOOPBACK, early_talker_ms: 0 },
  outbound: { mode: "capture" },
};

export function serveCommand(): Command {
  return new Command("serve")
    .description("run the server until SIGTERM or Ctrl-C")
    .option(...CONFIG_OPTION)
    .option(
      "--dev",
      "listen on loopback only, trust mail from this machine, keep outgoing mail in the capture box",
    )
    .action(async (options: CommonOptions & { dev?: boolean }) => {
      await untilStopped(await serve(configOf(options, options.dev ? DEV : {})));
    });
}

/** Resolves when the server has been told to stop and has drained; a second signal ends it at once. */
async function untilStopped(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    let told = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (told) process.kill(process.pid, "SIGKILL");
      told = true;
      server.app.log.info({ signal }, "stopping: finishing the work in progress; once more to stop at once");
      resolve();
    };
    process.on("SIGTERM", stop).on("SIGINT", stop);
  });
  await server[Symbol.asyncDispose]();
}
