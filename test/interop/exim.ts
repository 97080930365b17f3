import { chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Certificate } from "../support/authority.ts";
import { until } from "../support/until.ts";

const ROOT = process.env["EXIM_ROOT"] ?? "/";
const EXIM = join(ROOT, "usr/sbin/exim4");
const USER = "Debian-exim";
const START_MS = 50_000;

const uid = Number(Bun.spawnSync(["id", "-u", USER]).stdout.toString());
const gid = Number(Bun.spawnSync(["id", "-g", USER]).stdout.toString());

/**
 * It stands unpacked in a folder, because its package and Postfix's exclude each other; so the user that its package
 * makes has to be made by hand.
 */
export const canRunExim =
  Bun.which(EXIM) !== null &&
  process.getuid?.() === 0 &&
  uid > 0 &&
  Bun.spawnSync([EXIM, "-C", "/dev/null", "-bV"]).exitCode === 0;

export interface Exim extends AsyncDisposable {
  /** Hands a mail in by its command line. */
  sendmail(from: string, to: string, raw: string): Promise<void>;
  /** The oldest mail of a mailbox that no earlier call has given out, or the oldest whose subject begins so. */
  nextMail(local_part: string, subject?: string): Promise<string>;
  log: () => Promise<string>;
}

export interface EximOptions {
  address: string;
  domain: string;
  certificate: Certificate;
  /** Local parts with a mailbox; `grey` is put off at first, and mail to `dead` is taken and then returned. */
  mailboxes: string[];
  prefix: string[];
}

/** An Exim of its own on port 25 of an address, which speaks TLS in both directions or not at all. */
export async function startExim(options: EximOptions): Promise<Exim> {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "mailwright-exim-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  for (const part of ["", "spool", "log", "mail"]) {
    await mkdir(join(dir, part), { recursive: true });
    await chown(join(dir, part), uid, gid);
  }
  await writeFile(join(dir, "cert.pem"), options.certificate.cert);
  await writeFile(join(dir, "key.pem"), options.certificate.key, { mode: 0o640 });
  await chown(join(dir, "key.pem"), uid, gid);
  const config = join(dir, "exim.conf");
  await writeFile(config, eximConf(dir, options));
  const daemon = Bun.spawn([...options.prefix, EXIM, "-C", config, "-bdf", "-q1m"], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  stack.defer(async () => {
    daemon.kill();
    await daemon.exited;
  });
  const log = (): Promise<string> => readFile(join(dir, "log/mainlog"), "utf8").catch(() => "");
  await until(() => greets(options.address), START_MS, log);
  const seen = new Set<string>();
  const built = stack.move();
  return {
    log,
    async sendmail(from, to, raw) {
      const run = Bun.spawn([...options.prefix, EXIM, "-C", config, "-i", "-f", from, to], {
        stdin: Buffer.from(raw.replaceAll("\r\n", "\n")),
        stderr: "pipe",
      });
      const problem = await new Response(run.stderr).text();
      if ((await run.exited) !== 0) throw new Error(`exim: ${problem}`);
    },
    async nextMail(local_part, subject = "") {
      const box = join(dir, "mail", local_part, "new");
      let found: string | undefined;
      const look = async (): Promise<boolean> => {
        const names = await readdir(box).catch(() => []);
        for (const path of names.toSorted().map((name) => join(box, name))) {
          const mail = await readFile(path, "latin1");
          if (seen.has(path) || !mail.includes(`\nSubject: ${subject}`)) continue;
          seen.add(path);
          found = mail;
          return true;
        }
        return false;
      };
      await until(look, START_MS, log);
      return String(found);
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

function eximConf(dir: string, { address, domain, mailboxes }: EximOptions): string {
  return `
exim_path = ${EXIM}
exim_user = ${USER}
exim_group = ${gid}
deliver_drop_privilege = true
log_selector = +dkim_verbose
spool_directory = ${dir}/spool
log_file_path = ${dir}/log/%slog
pid_file_path = ${dir}/exim.pid
primary_hostname = mx.${domain}
local_interfaces = ${address}
daemon_smtp_ports = 25
domainlist local_domains = ${domain}
keep_environment =
tls_advertise_hosts = *
tls_certificate = ${dir}/cert.pem
tls_privatekey = ${dir}/key.pem
host_lookup =
rfc1413_hosts =
trusted_users = root
untrusted_set_sender = *
acl_smtp_mail = check_mail
acl_smtp_rcpt = check_rcpt

begin acl
check_mail:
  deny ! encrypted = *
       message = TLS only
  accept
check_rcpt:
  defer local_parts = grey
        condition = \${if exists{${dir}/spool/grey}{no}{\${run{/usr/bin/touch ${dir}/spool/grey}{yes}{yes}}}}
        message = 4.7.1 Greylisted, come back later
  accept domains = +local_domains
  deny message = relaying is not for you

begin routers
away:
  driver = dnslookup
  domains = ! +local_domains
  transport = wire
  self = send
  no_more
dead:
  driver = redirect
  local_parts = dead
  allow_fail
  data = :fail: 550 5.1.1 Nobody lives here
here:
  driver = accept
  local_parts = ${["grey", ...mailboxes].join(" : ")}
  transport = box

begin transports
wire:
  driver = smtp
  interface = ${address}
  allow_localhost
  hosts_require_tls = *
box:
  driver = appendfile
  maildir_format
  directory = ${dir}/mail/$local_part_data
  create_directory
  return_path_add
  delivery_date_add

begin retry
* * F,1h,1m
`;
}

function greets(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(25, host);
    socket.on("error", () => resolve(false));
    socket.on("data", () => {
      socket.end("QUIT\r\n");
      resolve(true);
    });
  });
}
