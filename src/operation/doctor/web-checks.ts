import { urlOf } from "../../lib/web-address.ts";
import { connect as connectTls } from "node:tls";
import { environment } from "../../config/config.ts";
import { KIND_INFO } from "../../resources/connections/kinds.ts";
import { PingFault } from "../../resources/connections/ping.ts";
import { apiPingOf, pingApi } from "../../resources/connections/ping-api.ts";
import { refuseMissingModel } from "../../resources/connections/chosen-model.ts";
import { endpointOf } from "../../ai/providers.ts";
import { mtaStsHost, mtaStsPolicy } from "../../resources/domains/own-mta-sts.ts";
import { createSafeFetch, type EgressRules, judgeHost } from "../../net/guarded-fetch.ts";
import { proxyOption, proxyVariables } from "../../net/outgoing-proxy.ts";
import { networkFault, networkWords, readCapped } from "../../net/responses.ts";
import { API_VERSION } from "../../lib/version.ts";
import { type Bench, type Check, fail, ok, type Outcome, skip, warn } from "./check.ts";
import { judgeCertificate } from "./judge-certificate.ts";
import { handshake } from "./smtp-probe.ts";
import { trusted } from "./trust.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

const ASK_MS = 10_000;
const MAX_CLOCK_SECONDS = 30;
const MAX_POLICY_BYTES = 65_536;

export const WEB_CHECKS: Check[] = [
  { name: "web address", run: checkBaseUrl },
  { name: "HTTPS certificate", run: checkCertificate },
  { name: "MTA-STS policy", run: checkPolicy },
  { name: "webhook egress", run: checkEgress },
  { name: "clock", run: checkClock },
  { name: "model provider", run: checkProvider },
  { name: "spam filter", run: checkSpamFilter },
  { name: "proxies", run: checkProxies },
];

async function checkBaseUrl(bench: Bench): Promise<Outcome> {
  const { base_url } = bench.app.config.server;
  if (base_url === "")
    return warn(
      "server.base_url is not set, so links in mails and OAuth lead to nowhere that others can reach.",
      'Set it to what people type, such as "https://mail.example.org".',
    );
  if (!bench.running) return skip("No server is running.");
  const fetch = createSafeFetch(await ownRules(bench, urlOf(base_url)?.hostname ?? ""));
  const mend = "See that the name leads to this machine, and that the proxy in front of it is up.";
  const response = await fetch(`${base_url}/livez`, { signal: timeoutSignal(ASK_MS) }).catch(
    (error: unknown) => unanswered(base_url, error, mend),
  );
  if ("verdict" in response) return response;
  const version = response.headers.get("service-version");
  if (version === null || !response.ok)
    return fail(`${base_url} answers with ${response.status}, but it is not this server.`, mend);
  if (version !== API_VERSION)
    return warn(
      `${base_url} answers with version ${version}, and this program has ${API_VERSION}.`,
      "Restart the server after an upgrade.",
    );
  if (base_url.startsWith("http:") && !isLocal(base_url))
    return warn(
      `${base_url} answers, without TLS: passwords and keys travel in the clear.`,
      'Put a proxy with HTTPS in front, or set server.tls to "acme" or "files".',
    );
  return ok(`${base_url} answers.`);
}

function unanswered(base_url: string, error: unknown, mend: string): Outcome {
  if (networkFault(error)?.code === "tls_error")
    return fail(
      `${base_url} answers, but nobody can trust it: ${networkWords(error)}`,
      'The line "HTTPS certificate" says what is wrong with it.',
    );
  return fail(`${base_url} does not answer: ${networkWords(error)}`, mend);
}

async function checkCertificate(bench: Bench): Promise<Outcome> {
  const url = urlOf(bench.app.config.server.base_url);
  if (url?.protocol !== "https:") return skip("server.base_url is not https.");
  const [address] = (await judgeHost(url.hostname, await ownRules(bench, url.hostname))).addresses;
  const port = Number(url.port || 443);
  const to = { host: address ?? url.hostname, port, servername: url.hostname, rejectUnauthorized: false };
  const tls = connectTls({ ...to, ...(await trusted(bench)) });
  const socket = await handshake(tls, ASK_MS).catch((error: unknown) => networkWords(error));
  if (typeof socket === "string")
    return fail(
      `No certificate was shown at ${url.hostname}, port ${port}: ${socket}`,
      'Mend the line "web address" first; then see that HTTPS is spoken there (server.tls, or the proxy in front).',
    );
  try {
    return judgeCertificate(socket, {
      name: url.hostname,
      now_ms: bench.app.nowMs(),
      self_signed: "fail",
    });
  } finally {
    socket.destroy();
  }
}

/** Fetches the MTA-STS policy as another mail server does (RFC 8461 §3.3). */
async function checkPolicy(bench: Bench): Promise<Outcome> {
  const { config } = bench.app;
  if (config.smtp.mta_sts === "off") return skip('smtp.mta_sts is "off".');
  const host = mtaStsHost(config);
  const { https_port } = bench.targets;
  const place = https_port === 443 ? host : `${host}:${https_port}`;
  const url = `https://${place}/.well-known/mta-sts.txt`;
  const mend = `Let ${host} lead to this server over HTTPS.`;
  const response = await createSafeFetch(await ownRules(bench, host))(url, {
    signal: timeoutSignal(ASK_MS),
  }).catch((error: unknown) => networkWords(error));
  if (typeof response === "string") return fail(`${url} could not be fetched: ${response}`, mend);
  const { bytes } = await readCapped(response, MAX_POLICY_BYTES);
  const text = new TextDecoder().decode(bytes);
  if (response.ok && text === mtaStsPolicy(config, config.smtp.mta_sts))
    return ok(`${url} shows our policy.`);
  if (response.ok && text === mtaStsPolicy(config, "testing"))
    return warn(
      `${url} shows the policy in mode "testing", because the certificate of the SMTP door would not hold.`,
      `Get a certificate for ${config.smtp.hostname}.`,
    );
  return fail(`${url} answers with ${response.status} and not with our policy.`, mend);
}

async function checkEgress({ app, targets }: Bench): Promise<Outcome> {
  try {
    const { status } = await askElsewhere(app, targets.web_url);
    return ok(`${targets.web_url} answered (${status}): webhooks can go out.`);
  } catch (error) {
    return fail(
      `${targets.web_url} could not be reached the way webhooks go: ${networkWords(error)}`,
      "See that the firewall lets this machine connect to port 443, and that its DNS answers.",
    );
  }
}

/** Compares our clock with that of another server: signatures, codes and certificates depend on it. */
async function checkClock({ app, targets }: Bench): Promise<Outcome> {
  const before_ms = app.wallMs();
  const said = await askElsewhere(app, targets.web_url).catch((error: unknown) => networkWords(error));
  if (typeof said === "string") return skip(`There is nothing to compare it with: ${said}`);
  const theirs_ms = Date.parse(said.headers.get("date") ?? "");
  if (Number.isNaN(theirs_ms)) return skip(`${targets.web_url} does not say what time it is.`);
  const off = Math.round(Math.max(theirs_ms - app.wallMs(), before_ms - theirs_ms - 1_000, 0) / 1_000);
  if (off <= MAX_CLOCK_SECONDS) return ok("The clock is right.");
  return fail(
    `The clock is ${off} seconds ${theirs_ms > before_ms ? "slow" : "fast"}, by what ${targets.web_url} says.`,
    "Let it be set by NTP: timedatectl set-ntp true",
  );
}

async function checkProvider({ app }: Bench): Promise<Outcome> {
  const { kind, base_url, api_key, model, models } = app.config.llm;
  if (kind === "")
    return skip(
      'There is no model under [llm]: every account needs one of its own, see "models of accounts".',
    );
  if (kind === "demo")
    return warn("The model under [llm] is the demo, which is no AI.", "Set llm.kind to a real provider.");
  const { label } = KIND_INFO[kind];
  const target = {
    kind,
    name: label,
    base_url: endpointOf({ kind, base_url, model: "" }).base_url,
    credential: api_key,
    headers: {},
    oauth: false,
    // Where the operator's own connection points is the operator's business.
    fetch: (url: string | URL, init?: RequestInit) =>
      fetch(url, { ...init, ...proxyOption(new URL(url).hostname) }),
    signal: timeoutSignal(ASK_MS),
  };
  try {
    const finding = await pingApi(target, apiPingOf(kind));
    for (const chosen of new Set([model, ...models]))
      await refuseMissingModel(target, { kind, model: chosen }, finding);
    return ok(`${label} answers: ${finding.detail}.`);
  } catch (error) {
    if (!(error instanceof PingFault)) throw error;
    return fail(error.message, "Mend it under [llm] in the configuration.");
  }
}

async function checkSpamFilter({ app }: Bench): Promise<Outcome> {
  const { url, password } = app.config.rspamd;
  if (url === "" && password === "") return skip("None is set (rspamd.url).");
  if (url === "")
    return warn(
      "rspamd.password is set, but rspamd.url is not, so no spam filter is asked.",
      "Set rspamd.url.",
    );
  const mend = "See that rspamd runs there and takes requests of this machine, or empty rspamd.url.";
  try {
    const ping = new URL("ping", url.endsWith("/") ? url : `${url}/`);
    const response = await fetch(ping, { redirect: "error", proxy: false, signal: timeoutSignal(ASK_MS) });
    await readCapped(response, MAX_POLICY_BYTES);
    return response.ok
      ? ok(`The spam filter at ${url} answers.`)
      : fail(`The spam filter at ${url} answers with status ${response.status}.`, mend);
  } catch (error) {
    return fail(`The spam filter at ${url} does not answer: ${networkWords(error)}.`, mend);
  }
}

async function checkProxies(): Promise<Outcome> {
  const names = proxyVariables(environment());
  if (names.length === 0) return skip("The environment names none.");
  return warn(
    `The environment names a proxy (${names.join(", ")}): requests of this server to the internet over HTTP go through it, also those with the keys of model providers. What is on this machine or in its network is asked directly, and mail takes no proxy.`,
    "If that is not meant, start the server without these variables; Docker sets them from ~/.docker/config.json.",
  );
}

function askElsewhere(app: Bench["app"], url: string) {
  return app.poster.post({
    url,
    headers: { "content-type": "text/plain", "user-agent": "Mailwright" },
    body: "",
    timeout_ms: ASK_MS,
    connect_ms: ASK_MS / 2,
    max_bytes: 1_024,
    fresh: true,
  });
}

/** Returns rules that allow our own address, wherever it is: only the operator chose it. */
async function ownRules(bench: Bench, host: string): Promise<EgressRules> {
  const resolve: EgressRules["resolve"] = (name, type) => bench.app.resolver(name, type, { fresh: true });
  return { resolve, allow: [host], ...(await trusted(bench)) };
}

function isLocal(url: string): boolean {
  return /^http:\/\/(?:localhost|127\.|\[::1\])/.test(url);
}
