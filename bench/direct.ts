import { rmSync } from "node:fs";
import { createVerifiedUser } from "../src/resources/accounts/accounts.ts";
import { createApp } from "../src/app.ts";
import { defaultConfig } from "../src/config/config.ts";
import { jobHandlers } from "../src/operation/jobs.ts";
import { createWorker } from "../src/jobs/worker.ts";
import { createLog } from "../src/lib/log.ts";
import { prepareLetter } from "../src/mail/writing/letters.ts";
import { canRunPostfix, startPostfix } from "../test/interop/postfix.ts";
import { canMakeNet, startNet } from "../test/interop/private-net.ts";
import { POSTFIX_PACKAGE, postfixVersion, sendLoad } from "./postfix.ts";
import { deliver, mailOf, startRelay } from "./smtp-peers.ts";
import {
  DOMAIN,
  interleave,
  noteRatio,
  roundsOf,
  percentile,
  printResults,
  printSettings,
  SENDER,
  temporaryFolder,
} from "./support.ts";

/**
 * From "send this" to its arrival at the server of another domain, found by MX and spoken to in STARTTLS: ours with its
 * DKIM signatures, against a Postfix that signs nothing. Both write each mail to disk first.
 */
const ROUNDS = roundsOf(3);
const MAILS = 600;
const SINGLE_MAILS = 60;
const AT_ONCE = 16;
const BYTES = 2_048;
const TO = "ann@sink.test";

if (!canMakeNet || !canRunPostfix) {
  console.log(
    `This bench needs root, BIND and dnsmasq (apt-get install bind9 dnsmasq-base), and Postfix: ${POSTFIX_PACKAGE}`,
  );
  process.exit(0);
}

await using stack = new AsyncDisposableStack();
let arrived = 0;
let onArrival: (() => void) | undefined;
const sink = stack.use(
  await startRelay(() => {
    arrived += 1;
    onArrival?.();
  }),
);
const net = stack.use(
  await startNet(({ address }) => [
    "sink MX 10 mx.sink",
    `mx.sink A ${address("exim")}`,
    `mx.mw A ${address("us")}`,
  ]),
);
const quiet = { debug_peer_list: "", smtp_tls_loglevel: "0", smtpd_tls_loglevel: "0" };
// It only ends TLS: what comes is handed on at once and never queued.
stack.use(
  await startPostfix({
    host: net.address("exim"),
    port: 25,
    relay: {},
    mailboxes: [],
    prefix: net.prefix,
    settings: {
      ...quiet,
      myhostname: "mx.sink.test",
      relay_domains: "sink.test",
      smtpd_proxy_filter: `127.0.0.1:${sink.port}`,
      smtpd_client_connection_count_limit: "0",
    },
  }),
);
const sender = stack.use(
  await startPostfix({
    host: net.address("postfix"),
    port: 25,
    relay: {},
    mailboxes: [],
    prefix: net.prefix,
    settings: { ...quiet, smtp_tls_security_level: "may", in_flow_delay: "0" },
  }),
);
const dir = temporaryFolder();
stack.defer(() => rmSync(dir, { recursive: true, force: true }));
const config = defaultConfig({
  data: { dir },
  smtp: { listen: "", domain: DOMAIN, hostname: "mx.mw.test" },
  outbound: { mode: "direct" },
  dns: { servers: [net.name_server] },
  egress: { allow: ["127.0.0.0/8"] },
});
const app = stack.use(await createApp(config, { log: createLog({ level: "warn", format: "text" }) }));
const worker = stack.use(createWorker(app, jobHandlers(app)));
Object.assign(app, { worker });
worker.start();
const user = await createVerifiedUser(app, { email: SENDER });

printSettings({
  postfix: await postfixVersion(),
  load: `${MAILS} mails of ${BYTES} bytes to one domain, then ${SINGLE_MAILS} one after the other`,
  sink: "Postfix's smtpd with STARTTLS in front of a sink in this process",
  rounds: ROUNDS,
});

await ours(100);
await theirs(100);
const rates = await interleave(
  ROUNDS,
  () => ours(MAILS),
  () => theirs(MAILS),
);
noteRatio("mails to one domain", rates, "/s");
const waits = await interleave(
  ROUNDS,
  () => waitOf(sendOne),
  () => waitOf(sendOneByPostfix),
);
noteRatio("p50 from submission to arrival, one at a time", waits, " ms");
printResults();

/** Mails per second. */
async function ours(mails: number): Promise<number> {
  return rateOf(mails, async () => {
    let left = mails;
    const submit = async (): Promise<void> => {
      while (left-- > 0) await sendOne();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, submit));
  });
}

async function theirs(mails: number): Promise<number> {
  return rateOf(mails, () =>
    sendLoad(25, TO, SENDER, { host: sender.address.host, bytes: BYTES, connections: AT_ONCE, mails }),
  );
}

async function rateOf(mails: number, submit: () => Promise<unknown>): Promise<number> {
  const goal = arrived + mails;
  const { promise, resolve } = Promise.withResolvers<void>();
  onArrival = () => {
    if (arrived >= goal) resolve();
  };
  const started = performance.now();
  await submit();
  await promise;
  return mails / ((performance.now() - started) / 1_000);
}

async function waitOf(submit: () => Promise<void>): Promise<number> {
  const waits: number[] = [];
  for (let mail = 0; mail < SINGLE_MAILS; mail++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    onArrival = resolve;
    const started = performance.now();
    await submit();
    await promise;
    waits.push(performance.now() - started);
  }
  return percentile(waits, 0.5);
}

async function sendOne(): Promise<void> {
  const queue = await prepareLetter(app, {
    user_id: user.id,
    to: TO,
    subject: "Figures",
    markdown: "x"
      .repeat(60)
      .concat(" ")
      .repeat(BYTES / 120),
  });
  await app.write(queue);
}

async function sendOneByPostfix(): Promise<void> {
  const { host, port } = sender.address;
  await deliver(port, TO, mailOf(Bun.randomUUIDv7(), BYTES), host);
}
