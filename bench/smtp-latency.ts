import { createSilentModel } from "./silent-model.ts";
import { hasPostfix, POSTFIX_PACKAGE, postfixVersion, sendLoad, startPostfix, WARM_UP } from "./postfix.ts";
import { deliver, mailOf } from "./smtp-peers.ts";
import {
  createAccount,
  DOMAIN,
  interleave,
  noteRatio,
  roundsOf,
  percentile,
  printResults,
  printSettings,
  SENDER,
  startScript,
  startServer,
} from "./support.ts";

/** How long a client waits for its 250: at a steady pace, during a flood, and while the workers have all they can do. */
const ROUNDS = roundsOf(5);
const PACES = [
  { name: "1 KB at 200/s", bytes: 1_024, per_second: 200, mails: 400 },
  { name: "50 KB at 100/s", bytes: 51_200, per_second: 100, mails: 200 },
];
const FLOOD = { bytes: 1_024, connections: 50, mails: 2_500 };
const QUICK = { per_second: 50, mails: 60, bytes: 1_024 };

if (!hasPostfix()) {
  console.log(`This bench needs Postfix: ${POSTFIX_PACKAGE}`);
  process.exit(0);
}

await using silence = createSilentModel();
await using instant = await startScript("instant-model.ts");
await using server = await startServer({ model_url: silence.url });
await using busy = await startServer({ model_url: `http://127.0.0.1:${instant.port}/v1` });
await using postfix = await startPostfix();
const { address } = await createAccount(server);
const { address: busyAddress } = await createAccount(busy);
const theirAddress = `inbox@${DOMAIN}`;
let serial = 0;
printSettings({
  postfix: `${await postfixVersion()}, deliveries deferred, queue on the same disk`,
  rounds: `${ROUNDS}, after ${WARM_UP.mails} mails to warm up`,
  latency: "final dot to 250, a new connection for each mail, started at a steady pace",
});

await sendLoad(server.smtp_port, address, SENDER, WARM_UP);
await sendLoad(postfix.port, theirAddress, SENDER, { ...WARM_UP, mails: 300 });
for (const { name, ...pace } of PACES) {
  const rounds = await interleave(
    ROUNDS,
    () => paced(server.smtp_port, address, pace),
    () => paced(postfix.port, theirAddress, pace),
  );
  const side = (share: number) => ({
    ours: rounds.ours.map((times) => percentile(times, share)),
    theirs: rounds.theirs.map((times) => percentile(times, share)),
  });
  noteRatio(`p50, ${name}`, side(0.5), " ms");
  noteRatio(`p99, ${name}`, side(0.99), " ms");
}

const flood = await interleave(
  ROUNDS,
  async () => {
    const flooding = sendLoad(server.smtp_port, address, SENDER, FLOOD);
    const times = await paced(server.smtp_port, address, QUICK);
    await flooding;
    return percentile(times, 0.99);
  },
  async () => percentile(await paced(server.smtp_port, address, QUICK), 0.99),
);
noteRatio("p99 of a second client, flooded against idle", flood, " ms");

const accepted = { ...FLOOD, mails: 1_000 };
// The first round leaves the busy server with work for all the others.
await sendLoad(busy.smtp_port, busyAddress, SENDER, { ...FLOOD, mails: 2_000 });
const saturated = await interleave(
  ROUNDS,
  () => sendLoad(busy.smtp_port, busyAddress, SENDER, accepted),
  () => sendLoad(server.smtp_port, address, SENDER, accepted),
);
noteRatio("accept rate, workers saturated against still", saturated, "/s");
printResults();

/** Milliseconds from dot to 250 of each mail. */
async function paced(
  port: number,
  to: string,
  pace: { bytes: number; per_second: number; mails: number },
): Promise<number[]> {
  const sent: Promise<number>[] = [];
  const started = performance.now();
  for (let index = 0; index < pace.mails; index++) {
    const due = started + (index * 1_000) / pace.per_second;
    const wait = due - performance.now();
    if (wait > 0) await Bun.sleep(wait);
    sent.push(deliver(port, to, mailOf(`paced-${++serial}`, pace.bytes)));
  }
  return Promise.all(sent);
}
