import { Command } from "commander";
import { splitListen } from "../config/forms.ts";
import { AppError } from "../errors.ts";
import { CONFIG_OPTION, type CommonOptions, configOf, printText } from "./options.ts";
import { shown } from "./shown.ts";

const TIMEOUT_MS = 5_000;

export function healthcheckCommand(): Command {
  return new Command("healthcheck")
    .description("ask the running server whether it is ready (exit code 0 if so)")
    .option(...CONFIG_OPTION)
    .option("--url <url>", "base address of the server (default: from the configuration)")
    .action(async (options: CommonOptions & { url?: string }) => {
      const url = `${options.url ?? localUrl(options)}/readyz`;
      const response = await fetch(url, {
        signal: AbortSignal.timeout(TIMEOUT_MS),
        tls: { rejectUnauthorized: false },
        proxy: false,
      }).catch(() => undefined);
      if (!response) throw new AppError("unavailable", `Nothing answers at ${url}.`);
      if (!response.ok)
        throw new AppError("unavailable", `The server is not ready: ${shown(await response.text())}`);
      const { warnings } = (await response.json()) as { warnings: Record<string, string> };
      printText(`${["ready", ...Object.values(warnings).map(shown)].join("\n")}\n`);
    });
}

/** Returns the local URL of the server. Its certificate is not checked there, because it is for the public name. */
function localUrl(options: CommonOptions): string {
  const { listen, tls } = configOf(options).server;
  const { host, port } = splitListen(listen) ?? { host: "127.0.0.1", port: 8080 };
  const local = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `${tls !== "off" ? "https" : "http"}://${local.includes(":") ? `[${local}]` : local}:${port}`;
}
