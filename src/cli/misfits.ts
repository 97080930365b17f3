import { readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, resolve, sep } from "node:path";
import { type Config, type Misfit, programPath } from "../config/config.ts";
import { INTEGRATION_KINDS } from "../config/integrations.ts";
import { PRICES } from "../config/rules.ts";
import { messageOf } from "../errors.ts";
import { missingKeys } from "../resources/integrations/providers.ts";
import { nameFault, pairFault } from "../tls/pem.ts";

/** Returns what the configuration names but does not exist, is not what it should be, or is incomplete. */
export async function misfits(config: Config): Promise<Misfit[]> {
  const { server, acme, backup } = config;
  const { found, texts } = await readPems({
    "server.cert": server.cert,
    "server.key": server.key,
    "acme.ca_file": acme.ca_file,
  });
  return [
    ...found,
    ...pairMisfit(config, texts),
    ...(await folderMisfit(backup.dir, config.data.dir)),
    ...missingPrograms(config),
    ...halfClients(config),
    ...halfPayments(config),
  ];
}

/** Finds programs of tool servers that are not there, or may not be run. One with a relative path begins in its own folder. */
function missingPrograms({ mcp: { stdio } }: Config): Misfit[] {
  return Object.entries(stdio).flatMap(([name, { command, env }]) => {
    if (!isAbsolute(command) && command.includes(sep)) return [];
    const path = env["PATH"] ?? programPath();
    if (Bun.which(command, { PATH: path }) !== null) return [];
    const why = isAbsolute(command)
      ? "there is no program of that name that this user may run"
      : `no such program is in ${path}`;
    const words = `is ${command}, and ${why}. Install it, or name the right one by its whole path`;
    return [{ path: `mcp.stdio.${name}.command`, words }];
  });
}

/** Finds incomplete OAuth clients: the server runs, but cannot connect accounts there. */
function halfClients({ integrations }: Config): Misfit[] {
  return INTEGRATION_KINDS.flatMap((kind) => {
    const settings = integrations[kind];
    const missing = missingKeys(kind, settings);
    const begun = (["client_id", "client_secret"] as const).find((key) => settings[key] !== "");
    if (begun === undefined || missing.length === 0) return [];
    return [
      {
        path: `integrations.${kind}.${begun}`,
        words: `is of no use without ${missing.join(" and ")}. Set what is missing`,
      },
    ];
  });
}

/** Finds incomplete payment settings: the server runs, but sells nothing. */
function halfPayments({ billing }: Config): Misfit[] {
  if (billing.stripe_secret_key !== "") return [];
  const begun = PAYMENT_KEYS.find((key) => billing[key] !== "");
  if (begun === undefined) return [];
  return [
    { path: `billing.${begun}`, words: "is of no use without billing.stripe_secret_key. Set that too" },
  ];
}

const PAYMENT_KEYS = ["stripe_webhook_secret", ...PRICES] as const;

async function readPems(files: Record<string, string>) {
  const found: Misfit[] = [];
  const texts: Record<string, string> = {};
  for (const [path, file] of Object.entries(files)) {
    if (file === "") continue;
    const place = resolve(file);
    try {
      const text = await readFile(place, "utf8");
      if (text.includes("-----BEGIN ")) texts[path] = text;
      else found.push({ path, words: `is ${place}, which holds no PEM block. Name a file in PEM form` });
    } catch (error) {
      found.push({ path, words: unreadable(error, place) });
    }
  }
  return { found, texts };
}

function unreadable(error: unknown, place: string): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR")
    return `is ${place}, and there is no such file. Put it there, or name the right one`;
  if (code === "EACCES")
    return `is ${place}, which this user may not read. Let the user that runs the server read it, and check as that user`;
  return `is ${place}, which cannot be read (${messageOf(error)}). Name a file in PEM form`;
}

function pairMisfit(
  { server }: Config,
  { "server.cert": cert, "server.key": key }: Record<string, string>,
): Misfit[] {
  if (cert === undefined || key === undefined) return [];
  const fault = pairFault({ cert, key });
  const misnamed = fault === undefined && server.tls === "files" ? nameFault(cert, server) : undefined;
  if (misnamed !== undefined)
    return [{ path: "server.cert", words: `${misnamed}. Name one for that name, or mend server.base_url` }];
  if (fault === undefined) return [];
  const mend = "Name the chain in server.cert, and in server.key the private key it was made for";
  return [{ path: "server.cert", words: `is of no use with server.key. ${fault} ${mend}` }];
}

/** Checks the folder of backups. The server creates it, but not its parent, whose disk may not be mounted. */
async function folderMisfit(dir: string, data: string): Promise<Misfit[]> {
  if (dir === "") return [];
  const above = dirname(resolve(dir));
  // The server creates the data folder at its first start.
  if (above === resolve(data)) return [];
  const is_there = await stat(above).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (is_there) return [];
  const words = `is in ${above}, and there is no such folder. Mount the disk or make that folder; the server makes only the last one`;
  return [{ path: "backup.dir", words }];
}
