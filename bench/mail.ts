import { createSign, generateKeyPairSync } from "node:crypto";
import { readMail } from "../src/mail/reading/parse-mail.ts";
import { createSilentModel } from "./silent-model.ts";
import { deliver, mailOf, startRelay } from "./smtp-peers.ts";
import {
  createAccount,
  noteFigure,
  roundsOf,
  noteRatio,
  percentile,
  printResults,
  printSettings,
  startScript,
  startServer,
} from "./support.ts";

/** From the 250 of a mail to its signed answer in the hands of the relay; and how many of those in a second. */
const ROUNDS = roundsOf(5);
const SINGLES = 40;
const QUEUED = 200;
const QUEUED_BYTES = 20_480;
const KEY = generateKeyPairSync("rsa", { modulusLength: 2_048 });
/** As many as one thread of the server has to do for a mail, for the sum of its parts. */
const PART_RUNS = 100;

const handed = new Map<string, () => void>();
await using model = await startScript("instant-model.ts");
await using relay = await startRelay((name) => handed.get(name)?.());
const model_url = `http://127.0.0.1:${model.port}/v1`;
await using server = await startServer({ model_url, relay_port: relay.port });
const { address } = await createAccount(server);
// A second server whose model never answers shows what the accept alone costs.
await using silence = createSilentModel();
await using silent = await startServer({ model_url: silence.url });
const { address: silentAddress } = await createAccount(silent);
printSettings({
  rounds: ROUNDS,
  singles: `${SINGLES} mails of 1 KB, one after the other`,
  queued: `${QUEUED} mails of ${QUEUED_BYTES / 1_024} KB, 20 connections`,
  parts:
    "accept with its commit + parse + model call + RSA signature + hand-over, each timed alone and summed",
});

const p50: number[] = [];
const p99: number[] = [];
const throughput = { ours: [] as number[], theirs: [] as number[] };
let serial = 0;
await queuedRun(50);
for (let round = 0; round < ROUNDS; round++) {
  const times: number[] = [];
  for (let index = 0; index < SINGLES; index++) times.push(await answerTime());
  p50.push(percentile(times, 0.5));
  p99.push(percentile(times, 0.99));
  throughput.ours.push(await queuedRun(QUEUED));
  throughput.theirs.push(await sumOfParts());
}
noteFigure("accepted to reply handed over, p50", p50, "ms");
noteFigure("accepted to reply handed over, p99", p99, "ms");
noteRatio("queued 20 KB mails against the sum of the parts", throughput, "/s");
printResults();

async function answerTime(): Promise<number> {
  const name = `single-${++serial}`;
  const answered = handedOver(name);
  await deliver(server.smtp_port, address, mailOf(name, 1_024));
  const accepted = performance.now();
  return (await answered) - accepted;
}

/** Answers per second, from the first connection to the last answer. */
async function queuedRun(mails: number): Promise<number> {
  const started = performance.now();
  const answers: Promise<number>[] = [];
  let left = mails;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const name = `queued-${++serial}`;
      answers.push(handedOver(name));
      await deliver(server.smtp_port, address, mailOf(name, QUEUED_BYTES));
    }
  };
  await Promise.all(Array.from({ length: 20 }, client));
  const ends = await Promise.all(answers);
  return mails / ((Math.max(...ends) - started) / 1_000);
}

function handedOver(name: string): Promise<number> {
  return new Promise((resolve) => {
    handed.set(name, () => {
      handed.delete(name);
      resolve(performance.now());
    });
  });
}

/** Mails per second if each part took what it takes alone, one after the other on one thread. */
async function sumOfParts(): Promise<number> {
  const raw = Buffer.from(mailOf("part", QUEUED_BYTES));
  const { privateKey } = KEY;
  const accept = await perRun(() =>
    deliver(silent.smtp_port, silentAddress, mailOf(`part-${++serial}`, QUEUED_BYTES)),
  );
  const parse = await perRun(() => readMail(raw));
  const ask = await perRun(askModel);
  const sign = await perRun(async () => createSign("sha256").update(raw).sign(privateKey));
  const send = await perRun(() => deliver(relay.port, address, mailOf("part", 3_000)));
  return 1_000 / (accept + parse + ask + sign + send);
}

async function perRun(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  for (let run = 0; run < PART_RUNS; run++) await work();
  return (performance.now() - started) / PART_RUNS;
}

async function askModel(): Promise<void> {
  const body = JSON.stringify({
    model: "instant",
    messages: [{ role: "user", content: "x".repeat(QUEUED_BYTES) }],
  });
  await (await fetch(`${model_url}/chat/completions`, { method: "POST", body })).json();
}
