import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SmtpAddress } from "./raw-client.ts";
import { until } from "../support/until.ts";

const POSTFIX = "/usr/sbin/postfix";
const SENDMAIL = "/usr/sbin/sendmail";
/** Debian's "nobody": owns the mailboxes. */
const MAIL_UID = 65_534;
const START_MS = 50_000;
const DELIVERY_MS = 15_000;

export interface Postfix extends AsyncDisposable {
  address: SmtpAddress;
  /** Hands a mail in by the sendmail command. */
  sendmail(from: string, to: string, raw: string): Promise<void>;
  /** The oldest mail of a mailbox that no earlier call has given out, with CRLF line ends. */
  nextMail(address: string): Promise<Buffer>;
  /** What it has logged so far. */
  log: () => Promise<string>;
}

export interface PostfixOptions {
  port: number;
  /** Domain to the server its mail is relayed to, always over STARTTLS. */
  relay: Record<string, SmtpAddress>;
  /** Default 127.0.0.1. */
  host?: string;
  /** By default one that is good for no name. */
  certificate?: { cert: string; key: string };
  /** More of main.cf. */
  settings?: Record<string, string>;
  /** Before its command. */
  prefix?: string[];
  /** Addresses with a mailbox; mail to others of their domains is taken and then returned. */
  mailboxes: string[];
}

/** Postfix is started by root only: it gives up its rights by itself. */
export const canRunPostfix = Bun.which(POSTFIX) !== null && process.getuid?.() === 0;

/** A Postfix of its own on a loopback port, with its queue, mailboxes and log in a temporary folder. */
export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "mailwright-postfix-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  await prepare(dir, options);
  const shell = Bun.spawn([...(options.prefix ?? []), POSTFIX, "-c", dir, "start-fg"], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  stack.defer(async () => {
    // The command in the foreground is a shell; its death would leave the daemons behind.
    const pid = Number(await readFile(join(dir, "queue/pid/master.pid"), "utf8").catch(() => shell.pid));
    if (shell.exitCode === null) process.kill(pid, "SIGTERM");
    await shell.exited;
  });
  const address = { host: options.host ?? "127.0.0.1", port: options.port };
  const log = (): Promise<string> => readFile(join(dir, "maillog"), "utf8").catch(() => "");
  await until(
    () => answers(address),
    START_MS,
    async () => `Postfix does not start: ${await log()}`,
  );
  const seen = new Set<string>();
  const built = stack.move();
  return {
    address,
    log,
    async sendmail(from, to, raw) {
      const run = Bun.spawn([SENDMAIL, "-C", dir, "-i", "-f", from, to], {
        stdin: Buffer.from(raw.replaceAll("\r\n", "\n")),
        stderr: "pipe",
      });
      const problem = await new Response(run.stderr).text();
      if ((await run.exited) !== 0) throw new Error(`sendmail: ${problem}`);
    },
    async nextMail(address) {
      const box = join(dir, "mail", address, "new");
      let name: string | undefined;
      const look = async (): Promise<boolean> => {
        const names = await readdir(box).catch(() => []);
        name = names.toSorted(byName).find((one) => !seen.has(join(box, one)));
        return name !== undefined;
      };
      await until(look, DELIVERY_MS, log);
      const path = join(box, name ?? "");
      seen.add(path);
      return Buffer.from((await readFile(path, "latin1")).replaceAll("\n", "\r\n"), "latin1");
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

async function prepare(dir: string, options: PostfixOptions): Promise<void> {
  // The daemons run as another user and have to get in.
  await chmod(dir, 0o755);
  for (const part of ["queue", "data", "mail"]) await mkdir(join(dir, part));
  const owner = Number(Bun.spawnSync(["id", "-u", "postfix"]).stdout.toString());
  await chown(join(dir, "data"), owner, 0);
  await chown(join(dir, "mail"), MAIL_UID, 0);
  await writeCertificate(dir, options.certificate ?? (await anyCertificate()));
  await writeFile(join(dir, "main.cf"), mainCf(dir, options));
  await writeFile(join(dir, "master.cf"), masterCf(options));
}

async function anyCertificate(): Promise<{ cert: string; key: string }> {
  const { generate } = await import("selfsigned");
  const made = await generate([{ name: "commonName", value: "postfix.test" }], {
    keyType: "ec",
    curve: "P-256",
  });
  return { cert: made.cert, key: made.private };
}

async function writeCertificate(dir: string, { cert, key }: { cert: string; key: string }): Promise<void> {
  await writeFile(join(dir, "cert.pem"), cert);
  await writeFile(join(dir, "key.pem"), key, { mode: 0o600 });
}

function mainCf(dir: string, { relay, mailboxes, settings }: PostfixOptions): string {
  const domains = new Set(mailboxes.map((address) => address.slice(address.lastIndexOf("@") + 1)));
  const routes = Object.entries(relay).map(([domain, to]) => `{${domain} = smtp:[${to.host}]:${to.port}}`);
  return Object.entries({
    compatibility_level: "3.6",
    queue_directory: join(dir, "queue"),
    data_directory: join(dir, "data"),
    maillog_file: join(dir, "maillog"),
    maillog_file_prefixes: dir,
    myhostname: "postfix.test",
    myorigin: "postfix.test",
    mydestination: "",
    inet_interfaces: "127.0.0.1",
    inet_protocols: "ipv4",
    mynetworks: "127.0.0.0/8",
    alias_maps: "",
    alias_database: "",
    smtputf8_enable: "yes",
    relay_domains: Object.keys(relay).join(", "),
    transport_maps: inline(routes),
    virtual_mailbox_domains: [...domains].join(", "),
    virtual_mailbox_base: join(dir, "mail"),
    virtual_mailbox_maps: inline(mailboxes.map((one) => `{${one} = ${one}/}`)),
    virtual_uid_maps: `static:${MAIL_UID}`,
    virtual_gid_maps: `static:${MAIL_UID}`,
    // Takes mail for mailboxes it does not have, so that it has to return it later.
    smtpd_reject_unlisted_recipient: "no",
    smtpd_tls_security_level: "may",
    smtpd_tls_cert_file: join(dir, "cert.pem"),
    smtpd_tls_key_file: join(dir, "key.pem"),
    smtpd_tls_loglevel: "1",
    smtpd_tls_received_header: "yes",
    smtp_tls_security_level: "encrypt",
    smtp_tls_loglevel: "1",
    // Logs what it says to our door and when.
    debug_peer_list: "mx.mw.test, 127.0.0.1",
    debug_peer_level: "1",
    ...settings,
  })
    .map(([name, value]) => `${name} = ${value}\n`)
    .join("");
}

/** A table without entries is none to it. */
function inline(entries: string[]): string {
  return entries.length === 0 ? "" : `inline:{ ${entries.join(", ")} }`;
}

/** The services of Debian's file that this one needs, none of them in a chroot. */
function masterCf({ port, host = "127.0.0.1" }: PostfixOptions): string {
  const unix = (name: string, command: string, mode = "- - n - -"): string =>
    `${name} unix ${mode} ${command}\n`;
  return [
    `${host}:${port} inet n - n - - smtpd\n`,
    "postlog unix-dgram n - n - 1 postlogd\n",
    unix("pickup", "pickup", "n - n 60 1"),
    unix("cleanup", "cleanup", "n - n - 0"),
    unix("qmgr", "qmgr", "n - n 300 1"),
    unix("tlsmgr", "tlsmgr", "- - n 1000? 1"),
    unix("rewrite", "trivial-rewrite"),
    ...["bounce", "defer", "trace"].map((name) => unix(name, "bounce", "- - n - 0")),
    unix("virtual", "virtual", "- n n - -"),
    unix("smtp", "smtp"),
    ...["proxymap", "error", "showq", "flush", "verify"].map((name) => unix(name, name)),
    ...["anvil", "scache"].map((name) => unix(name, name, "- - n - 1")),
    unix("retry", "error"),
  ].join("");
}

function answers({ host, port }: SmtpAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.on("error", () => resolve(false));
    socket.on("data", () => {
      socket.end("QUIT\r\n");
      resolve(true);
    });
  });
}

function byName(one: string, other: string): number {
  return one < other ? -1 : 1;
}
