import { lstat, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { messageOf } from "../../errors.ts";
import { sha256 } from "../../lib/sha256.ts";

/** Any permission of group or others. */
const WIDE_MODE = 0o077;
const NAME_CHARS = 12;

/**
 * The folder in which the programs of tool servers run, away from the data folder: `mcp.dir`, else a folder in the
 * system's temporary one, the same at each start of a server on this data folder.
 */
function programsRoot({ mcp, data }: Config): string {
  if (mcp.dir !== "") return resolve(mcp.dir);
  return join(tmpdir(), `mailwright-programs-${sha256(resolve(data.dir), "hex").slice(0, NAME_CHARS)}`);
}

/** The folder of one program of an account, which is its home and its working directory. */
export function programFolder(app: App, user_id: string, name: string): string {
  return join(programsRoot(app.config), user_id, encodeURIComponent(name));
}

/** Makes the folder if it is missing; returns a sentence if that cannot be done, else null. */
export async function folderRefusal(app: App, folder: string): Promise<string | null> {
  const root = programsRoot(app.config);
  try {
    await mkdir(root, { recursive: true, mode: 0o700 });
    if (app.config.mcp.dir === "" && !(await isOurs(root)))
      return `The folder ${root}, in which it would run, is not this server's alone. ${MEND}`;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return null;
  } catch (error) {
    return `There is no folder for it to run in: ${messageOf(error)}. ${MEND}`;
  }
}

const MEND = "The operator of this server can name another with mcp.dir of the configuration.";

/**
 * Whether the folder belongs to this server alone: another user of the temporary folder could have made it before, to
 * read or to replace what is in it.
 */
async function isOurs(path: string): Promise<boolean> {
  const found = await lstat(path);
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & WIDE_MODE) === 0;
}

/** Deletes the folders of an account's programs, with all that they kept. */
export async function removeProgramFolders(app: App, user_id: string): Promise<void> {
  const path = join(programsRoot(app.config), user_id);
  await rm(path, { recursive: true, force: true }).catch((error: unknown) => {
    app.log.warn({ path, err: messageOf(error) }, "what programs of a deleted account kept is still there");
  });
}
