import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

export const hasRspamd = Bun.which("rspamd") !== null && process.getuid?.() === 0;

/** Words that make a mail junk for the rule below; the other ones are rspamd's own test (GTUBE), and make it spam. */
export const JUNK_WORDS = "cheap pills";
export const SPAM_WORDS = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";

export interface Rspamd extends AsyncDisposable {
  url: string;
  stop(): Promise<void>;
}

/** Debian's rspamd with one rule of its own; it asks nobody else. */
export async function startRspamd(): Promise<Rspamd> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-rspamd-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await writeFile(join(dir, "suffixes"), "com\nnet\nexample\n");
  await writeFile(join(dir, "rules.lua"), RULE);
  await writeFile(join(dir, "rspamd.conf"), configOf(dir, port));
  const command = ["rspamd", "-f", "-i", "-u", "root", "-g", "root", "-c", join(dir, "rspamd.conf")];
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "ignore" });
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
  };
  await until(async () => (await fetch(`${url}/ping`).catch(() => null))?.ok === true);
  return {
    url,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const RULE = `rspamd_config.PILLS = {
  callback = function(task) return string.find(tostring(task:get_content()), "${JUNK_WORDS}", 1, true) ~= nil end,
  score = 8.0,
}
`;

function configOf(dir: string, port: number): string {
  return `options {
  pidfile = "${dir}/pid"; tempdir = "${dir}"; hs_cache_dir = "${dir}"; url_tld = "${dir}/suffixes"; filters = "";
  control_socket = "${dir}/control mode=0600";
  dns { nameserver = ["127.0.0.1:9"]; timeout = 0.1s; retransmits = 1; }
}
logging { type = "console"; level = "error"; }
worker "normal" { bind_socket = "127.0.0.1:${port}"; count = 1; }
actions { reject = 15; add_header = 6; }
lua = "${dir}/rules.lua";
`;
}
