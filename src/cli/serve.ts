import { Command } from "commander";
import { resolve } from "node:path";
import { type Config, type ConfigOverrides, defaultConfig, supervisor } from "../config/config.ts";
import { type Server, serve } from "../serve.ts";
import { messageOf } from "../errors.ts";
import { folderApart } from "./folder-apart.ts";
import { CONFIG_OPTION, type CommonOptions, configOf } from "./options.ts";
import { misfits } from "./misfits.ts";
import { reportToManager } from "./supervision.ts";

const LOOPBACK = ["127.0.0.1/32", "::1/128"];

/**
 * Returns the defaults of `--dev`, for a developer's machine: mail from it is trusted, and nobody else can reach it.
 * Configured values stay.
 */
function devOverrides({ server, smtp }: Config): ConfigOverrides {
  const usual = defaultConfig();
  const local = (listen: string, other: string) =>
    listen === other ? listen.replace("0.0.0.0", "127.0.0.1") : listen;
  return {
    server: { listen: local(server.listen, usual.server.listen) },
    smtp: {
      listen: local(smtp.listen, usual.smtp.listen),
      trusted_networks: [...smtp.trusted_networks, ...LOOPBACK],
      early_talker_ms: smtp.early_talker_ms === usual.smtp.early_talker_ms ? 0 : smtp.early_talker_ms,
    },
  };
}

export function serveCommand(): Command {
  return new Command("serve")
    .description("run the server until SIGTERM or Ctrl-C")
    .option(...CONFIG_OPTION)
    .option("--dev", "listen on this machine only (unless configured) and trust mail from it")
    .action(async (options: CommonOptions & { dev?: boolean }) => {
      const given = configOf(options);
      const config = options.dev ? configOf(options, devOverrides(given)) : given;
      // First, because a signal may arrive as soon as the server is up.
      const stopped = firstSignal();
      const found = await misfits(config);
      const apart = beganApart(options, config);
      const server = await serve(config);
      // Warned about now, because otherwise only the first backup would show it; what prevents a start was already
      // reported as an error.
      if (apart !== undefined) server.app.log.warn(apart);
      for (const { path, words } of found) server.app.log.warn(`${path} ${words}`);
      await untilStopped(server, stopped);
    });
}

/**
 * Returns a warning when a new server begins in another folder than that of the configuration file: started from
 * another working directory than before, it would refuse all mail with an empty database.
 */
function beganApart(options: CommonOptions, config: Config): string | undefined {
  const apart = folderApart(options, config);
  if (apart === undefined) return undefined;
  const { dir } = config.data;
  return `data.dir "${dir}" is taken from the folder in which the server is started, and not from that of ${apart.named}: a new server began in ${resolve(dir)}. If it was to be that in ${apart.beside}, stop this one, set data.dir to that path, and start it again.`;
}

/** Resolves to the signal that tells the program to stop; a second one ends it at once. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let told = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (told) process.kill(process.pid, "SIGKILL");
      told = true;
      resolve(signal);
    };
    process.on("SIGTERM", stop).on("SIGINT", stop);
  });
}

/** Resolves when the server has been told to stop and has drained. */
async function untilStopped(server: Server, stopped: Promise<NodeJS.Signals>): Promise<void> {
  const { app } = server;
  // With nothing to reload, SIGHUP ends the server like any program whose terminal is closed. Under systemd there is no
  // terminal, and `systemctl reload` sends SIGHUP whatever the configuration is.
  const reload = server.reload ?? (supervisor() && (async () => app.log.info("there is nothing to reload")));
  if (reload)
    process.on(
      "SIGHUP",
      () =>
        void reload().catch((error: unknown) => app.log.error(`nothing was reloaded: ${messageOf(error)}`)),
    );
  const manager = await reportToManager(server);
  const signal = await stopped;
  app.log.info({ signal }, "stopping: finishing the work in progress; once more to stop at once");
  manager.stopping();
  await server[Symbol.asyncDispose]();
  app.log.info("stopped");
}
