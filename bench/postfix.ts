import { $ } from "bun";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cpuSeconds, DOMAIN, freePort, temporaryFolder } from "./support.ts";

export const POSTFIX_PACKAGE = "apt-get install postfix";

export interface Postfix extends AsyncDisposable {
  port: number;
  /** The CPU time of all its processes, those that have ended included. */
  cpuSeconds(): number;
}

export function hasPostfix(): boolean {
  return Bun.which("postfix", { PATH }) !== null && Bun.which("smtp-source", { PATH }) !== null;
}

export async function postfixVersion(): Promise<string> {
  return (await $`postconf -d -h mail_version`.env(ENVIRONMENT).text()).trim();
}

/** `defer`: accepted mail is queued and every delivery put off. `hold`: its queue manager never even looks at it. */
export type PostfixMode = "defer" | "hold";

/** Debian's Postfix with a queue of its own on disk; every throttle that would slow a loopback flood down is off. */
export async function startPostfix(mode: PostfixMode = "defer"): Promise<Postfix> {
  const dir = temporaryFolder();
  const port = await freePort();
  for (const name of ["etc", "queue", "data"]) mkdirSync(join(dir, name));
  writeFileSync(join(dir, "etc/main.cf"), mainCf(dir, mode));
  writeFileSync(join(dir, "etc/master.cf"), masterCf(port));
  await $`chmod 755 ${dir} && chown postfix ${join(dir, "data")}`.quiet();
  const config = join(dir, "etc");
  await $`postfix -c ${config} start`.env(ENVIRONMENT).quiet();
  const master = Number(readFileSync(join(dir, "queue/pid/master.pid"), "utf8").trim());
  return {
    port,
    cpuSeconds: () => childrenOf(master).reduce((sum, pid) => sum + cpuOf(pid), cpuSeconds(master, true)),
    async [Symbol.asyncDispose]() {
      await $`postfix -c ${config} abort`.env(ENVIRONMENT).quiet().nothrow();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface Load {
  /** Default 127.0.0.1. */
  host?: string;
  bytes: number;
  connections: number;
  mails: number;
}

/** The machine code of the paths that a mail takes gets better until about here; Postfix has none to make. */
export const WARM_UP: Load = { bytes: 1_024, connections: 50, mails: 20_000 };

/** Sends by smtp-source, a new connection for each mail. Gives mails per second. */
export async function sendLoad(port: number, to: string, from: string, load: Load): Promise<number> {
  const { bytes, connections, mails, host = "127.0.0.1" } = load;
  const started = performance.now();
  await $`smtp-source -s ${connections} -m ${mails} -l ${bytes} -f ${from} -t ${to} ${host}:${port}`
    .env(ENVIRONMENT)
    .quiet();
  return mails / ((performance.now() - started) / 1_000);
}

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
const ENVIRONMENT = { PATH };

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}

/** Zero for a process that ended since it was listed: its parent counts it then. */
function cpuOf(pid: number): number {
  try {
    return cpuSeconds(pid, true);
  } catch {
    return 0;
  }
}

const DELIVERY: Record<PostfixMode, string> = {
  defer: "defer_transports = local",
  hold: "smtpd_client_restrictions = check_client_access static:hold",
};

function mainCf(dir: string, mode: PostfixMode): string {
  return `compatibility_level = 3.6
queue_directory = ${dir}/queue
data_directory = ${dir}/data
mail_owner = postfix
setgid_group = postdrop
myhostname = ${DOMAIN}
mydestination = ${DOMAIN}
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
alias_maps =
alias_database =
${DELIVERY[mode]}
smtpd_recipient_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
smtpd_tls_security_level = none
message_size_limit = 31457280
in_flow_delay = 0
default_process_limit = 200
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
`;
}

function masterCf(port: number): string {
  return `127.0.0.1:${port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
local unix - n n - - local
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
proxymap unix - - n - - proxymap
showq unix n - n - - showq
`;
}
