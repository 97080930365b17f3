import { createSilentModel } from "./silent-model.ts";
import {
  hasPostfix,
  type Load,
  POSTFIX_PACKAGE,
  postfixVersion,
  sendLoad,
  startPostfix,
  WARM_UP,
} from "./postfix.ts";
import {
  cpuSeconds,
  createAccount,
  DOMAIN,
  interleave,
  noteRatio,
  roundsOf,
  printResults,
  printSettings,
  SENDER,
  startServer,
} from "./support.ts";

/** How fast mail is accepted, 250 meaning synced, against a Postfix that queues to disk. */
const ROUNDS = roundsOf(5);

const LOADS: (Load & { name: string; postfix_mails: number })[] = [
  {
    name: "1 KB x 50 connections",
    bytes: 1_024,
    connections: 50,
    mails: 3_000,
    postfix_mails: 1_200,
  },
  { name: "1 KB x 10", bytes: 1_024, connections: 10, mails: 2_000, postfix_mails: 1_000 },
  { name: "50 KB x 50", bytes: 51_200, connections: 50, mails: 1_000, postfix_mails: 500 },
  { name: "50 KB x 10", bytes: 51_200, connections: 10, mails: 1_000, postfix_mails: 500 },
  { name: "1 MB x 10", bytes: 1_048_576, connections: 10, mails: 100, postfix_mails: 100 },
  { name: "1 KB x 1", bytes: 1_024, connections: 1, mails: 400, postfix_mails: 300 },
];

if (!hasPostfix()) {
  console.log(`This bench needs Postfix: ${POSTFIX_PACKAGE}`);
  process.exit(0);
}

// The model never answers, so that the workers stand still and nothing but accepting is measured.
await using model = createSilentModel();
await using server = await startServer({ model_url: model.url });
// `bun bench/smtp.ts hold` is the harder peer: a Postfix whose queue manager has nothing to do.
const mode = process.argv[2] === "hold" ? "hold" : "defer";
await using postfix = await startPostfix(mode);
const { address } = await createAccount(server);
printSettings({
  postfix: await postfixVersion(),
  load: "smtp-source, a new connection for each mail",
  rounds: `${ROUNDS}, after ${WARM_UP.mails} mails to warm up`,
  ours: "250 after commit with synchronous=FULL, workers standing still",
  postfix_settings: `${mode}, queue on the same disk, no throttles`,
});

await sendLoad(server.smtp_port, address, SENDER, WARM_UP);
await sendLoad(postfix.port, `inbox@${DOMAIN}`, SENDER, { ...WARM_UP, mails: 200 });
for (const { name, postfix_mails, ...load } of LOADS) {
  const rounds = await interleave(
    ROUNDS,
    () => measured(load, () => cpuSeconds(server.pid), sendLoad(server.smtp_port, address, SENDER, load)),
    () => {
      const theirs = { ...load, mails: postfix_mails };
      return measured(theirs, postfix.cpuSeconds, sendLoad(postfix.port, `inbox@${DOMAIN}`, SENDER, theirs));
    },
  );
  const side = (key: "rate" | "cpu_ms") => ({
    ours: rounds.ours.map((round) => round[key]),
    theirs: rounds.theirs.map((round) => round[key]),
  });
  noteRatio(`accept, ${name}`, side("rate"), "/s");
  if (load.bytes === 1_024 && load.connections === 50)
    noteRatio("CPU per accepted mail, 1 KB x 50", side("cpu_ms"), " ms");
}
printResults();

async function measured(
  { mails }: Load,
  cpu: () => number,
  sent: Promise<number>,
): Promise<{ rate: number; cpu_ms: number }> {
  const before = cpu();
  const rate = await sent;
  return { rate, cpu_ms: ((cpu() - before) * 1_000) / mails };
}
