import { type Gateway, startGateway } from "./gateway.ts";
import {
  createAccount,
  interleave,
  noteFigure,
  roundsOf,
  noteRatio,
  percentile,
  printResults,
  printSettings,
  startScript,
  startServer,
} from "./support.ts";

/** What POST /v1/messages adds to a model that answers at once, everything durable, against a gateway that stores nothing. */
const ROUNDS = roundsOf(5);
const AT_ONCE = 32;
const MANY = 1_500;
/** Requests to each side before any is counted: the machine code gets better until about here. */
const WARM_UP = 10_000;
const ONE_BY_ONE = 250;

await using model = await startScript("instant-model.ts");
const model_url = `http://127.0.0.1:${model.port}/v1`;
await using server = await startServer({ model_url });
await using gateway = await startGateway();
const { api_key } = await createAccount(server);
printSettings({
  gateway: gateway
    ? `@portkey-ai/gateway ${gateway.version} on Node ${nodeVersion()}`
    : "could not be installed",
  rounds: `${ROUNDS}, after ${WARM_UP} requests to warm up`,
  requests: `${MANY} with ${AT_ONCE} at once, ${ONE_BY_ONE} one at a time, in each round`,
  ours: "one synced commit a request, routing.concurrency as shipped (1000)",
});

type Call = () => Promise<Response>;

const question = "What is six times seven?";
const chat = JSON.stringify({ model: "instant", messages: [{ role: "user", content: question }] });
const json = { "content-type": "application/json" };
const direct: Call = () => post(`${model_url}/chat/completions`, json, chat);
const ours: Call = () =>
  post(
    `${server.http}/v1/messages`,
    { ...json, "x-api-key": api_key },
    JSON.stringify({ instruction: question }),
  );
const viaGateway =
  (peer: Gateway): Call =>
  () =>
    post(
      `${peer.url}/v1/chat/completions`,
      {
        ...json,
        authorization: "Bearer none",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": model_url,
      },
      chat,
    );

for (const call of [direct, ours, ...(gateway ? [viaGateway(gateway)] : [])]) await flood(call, WARM_UP);

if (gateway) {
  const theirs = viaGateway(gateway);
  const many = await interleave(
    ROUNDS,
    () => flood(ours, MANY),
    () => flood(theirs, MANY),
  );
  noteRatio(
    `requests, ${AT_ONCE} at once`,
    sides(many, (round) => round.rate),
    "/s",
  );
  noteRatio(
    `p99, ${AT_ONCE} at once`,
    sides(many, (round) => round.p99),
    " ms",
  );
  const single = await interleave(
    ROUNDS,
    () => added(ours),
    () => added(theirs),
  );
  noteRatio("added p50, one at a time", single, " ms");
} else {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push((await flood(ours, MANY)).rate);
  noteFigure(`requests, ${AT_ONCE} at once, without a peer`, rounds, "/s");
}
printResults();

async function post(url: string, headers: Record<string, string>, body: string): Promise<Response> {
  const answer = await fetch(url, { method: "POST", headers, body });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${text}`);
  if (!text.includes("42")) throw new Error(`${url} did not pass on the model's answer: ${text}`);
  return answer;
}

async function flood(call: Call, requests: number): Promise<{ rate: number; p99: number }> {
  const times: number[] = [];
  let left = requests;
  const started = performance.now();
  const loop = async (): Promise<void> => {
    while (left-- > 0) times.push(await timed(call));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, loop));
  return { rate: requests / ((performance.now() - started) / 1_000), p99: percentile(times, 0.99) };
}

/** Milliseconds that going through `call` adds at the median to asking the model directly, both in turns. */
async function added(call: Call): Promise<number> {
  const through: number[] = [];
  const bare: number[] = [];
  for (let index = 0; index < ONE_BY_ONE; index++) {
    through.push(await timed(call));
    bare.push(await timed(direct));
  }
  return percentile(through, 0.5) - percentile(bare, 0.5);
}

async function timed(call: Call): Promise<number> {
  const started = performance.now();
  await call();
  return performance.now() - started;
}

function sides<T>(rounds: { ours: T[]; theirs: T[] }, of: (round: T) => number) {
  return { ours: rounds.ours.map(of), theirs: rounds.theirs.map(of) };
}

function nodeVersion(): string {
  return Bun.spawnSync(["node", "--version"]).stdout.toString().trim();
}
