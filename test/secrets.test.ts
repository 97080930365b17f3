import { expect, test } from "bun:test";
import { type House, house, inbox, type ServerProcess } from "./faults/house.ts";
import { rawMail } from "./support/mails.ts";
import { startModelServer } from "./support/model-server.ts";
import { deliver } from "./support/smtp-client.ts";
import { type SmtpSink, startSmtpSink } from "./support/smtp-sink.ts";
import { startReceiver, TO_LOOPBACK } from "./support/webhook-receiver.ts";
import { until } from "./support/until.ts";

const EMAIL = "ada@example.com";

let seeds = 0;

/** Looks like nothing else, in whatever it is put. */
function seed(what: string): string {
  seeds += 1;
  return `seeded${what}${String(seeds).padStart(3, "0")}zqxj`;
}

/** What is nobody's business: the operator's and everybody's secrets, and what mails, instructions and answers say. */
const SECRETS = {
  master_key: Buffer.from("seeded-master-key-of-32-bytes!!!").toString("base64"),
  relay: seed("Relay"),
  llm: `sk-${seed("Llm")}`,
  stripe: `sk_test_${seed("Stripe")}`,
  stripe_hook: `whsec_${seed("StripeHook")}`,
  client: seed("Client"),
  metrics: seed("Metrics"),
  credential: `sk-${seed("Credential")}`,
  wrong_key: `mw_live_${seed("Key")}`,
  password: `${seed("Password")} river`,
  wrong_password: `${seed("Wrong")} river`,
  cookie: seed("Cookie"),
  oauth_code: seed("Code"),
  oauth_state: seed("State"),
  subject: seed("Subject"),
  body: seed("Body"),
  file: seed("File"),
  instruction: seed("Instruction"),
  content: seed("Content"),
  context: seed("Context"),
  answer: seed("Answer"),
  hook_path: seed("Hook"),
  malformed: seed("Malformed"),
};

type Headers = Record<string, string>;

interface World {
  at: House;
  server: ServerProcess;
  sink: SmtpSink;
  hook_url: string;
  model_url: string;
  api_key: string;
  /** The address of the inbox. */
  address: string;
  /** Every error answer, and all that was printed. */
  said: string[];
  /** Secrets that the server made itself. */
  found: Record<string, string>;
  ask(path: string, init?: { body?: string; headers?: Headers }): Promise<Response>;
  post(path: string, body: unknown): Promise<Response>;
}

test("no secret, and nothing of what mails and instructions say, is in the log, an error answer, the figures or what is printed", async () => {
  // As some providers do, it repeats the key that it refuses.
  await using model = startModelServer({
    reply: ({ messages }) =>
      messages.some(({ content }) => content.includes("refuse"))
        ? Response.json({ error: { message: `Incorrect API key: ${SECRETS.llm}` } }, { status: 401 })
        : SECRETS.answer,
  });
  await using sink = await startSmtpSink({ auth: { user: "relay", password: SECRETS.relay } });
  await using receiver = startReceiver(() => new Response(SECRETS.answer, { status: 500 }));
  await using at = await house(settings(model.base_url, sink.port));
  const made = await at.cli("user", "create", EMAIL, "--api-key", "--json");
  const { api_key } = JSON.parse(made.out) as { api_key: string };
  await using server = await at.start();
  const outside = { sink, hook_url: receiver.url, model_url: model.base_url };
  const address = await inbox(server, { email: EMAIL, api_key });
  const world = open({ at, server, api_key, address, ...outside });
  await useEverything(world);
  await sendMails(world);
  await tryCredentials(world);
  await signIn(world);
  await sendNonsense(world);
  await printEverything(world);
  server.kill("SIGTERM");
  await server.exited;
  const all = { log: server.log(), said: world.said.join("\n") };
  // It has been everywhere.
  expect(all.log).toContain('"path":"/integrations/notes/callback"');
  expect(all.log).toContain('"msg":"message failed"');
  expect(all.said).toMatch(/mailwright_info[^]*relay_url[^]*ada@example\.com/);
  for (const [name, value] of Object.entries({ ...SECRETS, ...world.found }))
    for (const form of [value, encodeURIComponent(value), Buffer.from(value).toString("base64").slice(0, -4)])
      for (const [where, text] of Object.entries(all))
        expect({ name, where, found: around(text, form) }).toEqual({ name, where, found: null });
}, 90_000);

function settings(base_url: string, relay_port: number) {
  return {
    security: { master_key: SECRETS.master_key },
    llm: { kind: "openai_compatible", base_url, api_key: SECRETS.llm, model: "m" },
    outbound: { mode: "relay", relay_url: `smtp://relay:${SECRETS.relay}@127.0.0.1:${relay_port}` },
    billing: {
      stripe_secret_key: SECRETS.stripe,
      stripe_webhook_secret: SECRETS.stripe_hook,
      stripe_api_base: base_url.replace("/v1", ""),
    },
    integrations: {
      notes: { client_id: "notes", client_secret: SECRETS.client, token_url: `${base_url}/token` },
    },
    metrics: { token: SECRETS.metrics },
    webhooks: TO_LOOPBACK,
    egress: TO_LOOPBACK,
    plans: { default: "team" },
    log: { format: "json", level: "trace" },
  };
}

function open(parts: Omit<World, "said" | "found" | "ask" | "post">): World {
  const said: string[] = [];
  const ask: World["ask"] = async (path, { body, headers } = {}) => {
    const response = await fetch(`${parts.server.http}${path}`, {
      method: body === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: { "x-api-key": parts.api_key, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body }),
    });
    if (response.status >= 400) said.push(await response.clone().text());
    return response;
  };
  const post: World["post"] = (path, body) => ask(path, { body: JSON.stringify(body) });
  return { ...parts, said, found: { api_key: parts.api_key }, ask, post };
}

async function useEverything({ said, found, hook_url, model_url, ask, post }: World): Promise<void> {
  const hook = await post("/v1/webhooks", { url: `${hook_url}/${SECRETS.hook_path}`, event_types: ["*"] });
  found["hook"] = ((await hook.json()) as { secret: string }).secret;
  await post("/contexts", { title: "Voice", kind: "instruction", body: SECRETS.context });
  const base_url = `${model_url}/none`;
  const { credential } = SECRETS;
  const made = await post("/connections", { kind: "openai_compatible", base_url, credential, model: "m" });
  const { id } = (await made.json()) as { id: string };
  await post(`/connections/${id}/test`, {});
  await post("/v1/messages", { instruction: SECRETS.instruction, content: SECRETS.content });
  // The key is the operator's, and who asks need not be.
  const refused = await post("/v1/messages", { instruction: "refuse this" });
  const text = await refused.text();
  expect(JSON.parse(text)).toMatchObject({ status: "failed" });
  said.push(text);
  await post("/integrations/notes/connect", {});
  await ask(`/integrations/notes/callback?code=${SECRETS.oauth_code}&state=${SECRETS.oauth_state}`);
  await post("/billing/checkout", { plan: "pro" });
}

async function sendMails({ server, address: to }: World): Promise<void> {
  const { subject, body, file } = SECRETS;
  const send = (mail: Parameters<typeof rawMail>[0]) => {
    const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>`, ...mail.headers };
    return deliver(server.smtp, {
      from: EMAIL,
      to,
      raw: rawMail({ to, from: EMAIL, subject, ...mail, headers }),
    });
  };
  await send({ text: body, attachments: [{ filename: `${file}.pdf`, content: body }] });
  await send({ text: `refuse ${body}` });
  await send({ text: body, headers: { From: "second@example.com" } });
  for (const words of [/"message failed"[^]*"message failed"/, /"mail handed over"[^]*"mail handed over"/])
    await until(() => words.test(server.log()));
}

/** Whatever can be wrong about a credential. */
async function tryCredentials({ said, ask, post }: World): Promise<void> {
  await ask("/inboxes", { headers: { "x-api-key": SECRETS.wrong_key } });
  await ask("/inboxes", { headers: { "x-api-key": "", cookie: `service_session=${SECRETS.cookie}` } });
  await post("/auth/login", { email: EMAIL, password: SECRETS.wrong_password });
  const password = { password: SECRETS.password, current_password: SECRETS.wrong_password };
  await post("/auth/set-password", password);
  await ask("/metrics", { headers: { authorization: `Bearer ${SECRETS.metrics}x` } });
  const figures = await ask("/metrics", { headers: { authorization: `Bearer ${SECRETS.metrics}` } });
  said.push(await figures.text());
}

async function signIn({ server, sink, said, found, post }: World): Promise<void> {
  await post("/auth/register", { email: "bob@example.com", password: SECRETS.password });
  const code = await codeIn(sink);
  const wrong = code === "111111" ? "222222" : "111111";
  await post("/auth/verify", { email: "bob@example.com", code: wrong });
  const signed_in = await post("/auth/verify", { email: "bob@example.com", code });
  expect(signed_in.status).toBe(200);
  const [, cookie = ""] = /service_session=([^;]+)/.exec(signed_in.headers.get("set-cookie") ?? "") ?? [];
  found["cookie"] = cookie;
  expect(cookie.length).toBeGreaterThan(20);
  // So short that ids and times may have it in them.
  expect(`${server.log()}${said.join(" ")}`).not.toMatch(new RegExp(`\\b${code}\\b`));
}

async function sendNonsense({ ask, post }: World): Promise<void> {
  const { malformed } = SECRETS;
  await ask("/billing/webhook", { body: malformed, headers: { "stripe-signature": `t=1,v1=${malformed}` } });
  for (const path of ["/v1/messages", "/connections", "/auth/login", "/contexts"]) {
    await ask(path, { body: `{"password": "${malformed}", ` });
    const text = { password: [malformed], instruction: [malformed], kind: malformed };
    await post(path, { credential: { not: malformed }, ...text });
  }
}

async function printEverything({ at, said }: World): Promise<void> {
  for (const words of [
    ["config", "dump"],
    ["queue", "list"],
    ["queue", "list", "--json"],
    ["user", "list", "--json"],
    ["suppression", "list"],
    ["dkim", "show"],
    ["dns", "records"],
  ]) {
    const { out, err } = await at.cli(...words);
    said.push(out, err);
  }
}

/** What stands around the words, for who has to find out how they came there. */
function around(text: string, words: string): string | null {
  const at = text.indexOf(words);
  return at < 0 ? null : text.slice(Math.max(0, at - 200), at + 100);
}

async function codeIn({ mails }: SmtpSink): Promise<string> {
  for (;;) {
    const found = mails
      .map(({ raw }) => raw.toString())
      .find((raw) => raw.includes("To: bob@example.com") && /^\d{6}\b|\b\d{6}\b/m.test(raw));
    const body = found?.split("\r\n\r\n").slice(1).join("\n") ?? "";
    const [code] = /\b\d{6}\b/.exec(body) ?? [];
    if (code !== undefined) return code;
    await Bun.sleep(10);
  }
}
