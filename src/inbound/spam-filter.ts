import type { App } from "../app.ts";
import { parseJson } from "../lib/foreign-json.ts";
import { networkWords, readCapped } from "../net/responses.ts";
import type { Delivery } from "./decide.ts";
import type { Author } from "./examine.ts";
import { MB } from "../lib/sizes.ts";

/** How long a mail waits for the spam filter; then it is accepted as if there were none. */
const WITHIN_MS = 2_000;
const MAX_ANSWER_BYTES = MB;
const SHOWN_SYMBOLS = 5;
const MAX_SYMBOL_CHARS = 60;

/** The spam filter's verdict against a mail. */
export interface Junk {
  /** `refuse`: in the SMTP session; `leave_out`: accept it without working on it. */
  verdict: "refuse" | "leave_out";
  /** The score with the rules behind it, as a clause. */
  why: string;
}

/**
 * Asks rspamd about a mail (`POST /checkv2`); null where it has nothing against it, none is set, or none answers: then the mail
 * passes, and `/readyz` warns. Mail from the operator's own networks is not asked about.
 */
export async function askSpamFilter(
  app: App,
  delivery: Delivery,
  { from_address, identity }: { from_address: string; identity: Author["identity"] },
): Promise<Junk | null> {
  const { url } = app.config.rspamd;
  if (url === "" || identity.trusted_network || !delivery.recipients.some(({ inbox }) => inbox)) return null;
  try {
    const found = readVerdict(await ask(app, delivery, from_address));
    if (app.spam_filter.trouble !== null) app.log.info("the spam filter answers again");
    app.spam_filter.trouble = null;
    return found;
  } catch (error) {
    const problem = error instanceof Unusable ? error.message : networkWords(error);
    if (app.spam_filter.trouble === null)
      app.log.warn({ problem }, "the spam filter does not answer; mail passes without it");
    app.spam_filter.trouble = { since: app.spam_filter.trouble?.since ?? app.now(), problem };
    return null;
  }
}

/** Returns a warning for `/readyz` while the spam filter does not answer; otherwise undefined. */
export function spamFilterWarning({ config, spam_filter: { trouble } }: App): string | undefined {
  if (trouble === null || config.rspamd.url === "") return undefined;
  return `The spam filter at ${config.rspamd.url} did not answer the last mail (${trouble.problem}), so mail passes without it. See that it runs there, or empty rspamd.url.`;
}

/** Returns what the owner reads about a mail refused as spam. */
export function spamWords({ why }: Junk): string {
  return `It was refused, because the spam filter of this server is sure that it is spam (${why}).`;
}

/** Returns what the owner reads about a mail left out as junk. */
export function junkWords({ why }: Junk): string {
  return `It was left out, because the spam filter of this server takes it for junk (${why}).`;
}

class Unusable extends Error {}

async function ask(
  app: App,
  { raw, mail_from, helo, remote_address, recipients }: Delivery,
  from_address: string,
): Promise<unknown> {
  const { url, password } = app.config.rspamd;
  const headers = new Headers({
    "content-type": "message/rfc822",
    ip: remote_address,
    helo: inHeader(helo),
    from: inHeader(mail_from || from_address),
    ...(password === "" ? {} : { password }),
  });
  for (const { address } of recipients) headers.append("rcpt", inHeader(address));
  const response = await fetch(new URL("checkv2", url.endsWith("/") ? url : `${url}/`), {
    method: "POST",
    headers,
    body: new Uint8Array(raw),
    redirect: "error",
    // Whole mails and the password are for the filter alone.
    proxy: false,
    signal: AbortSignal.timeout(WITHIN_MS),
  });
  const { bytes, truncated } = await readCapped(response, MAX_ANSWER_BYTES);
  if (response.status !== 200) throw new Unusable(`it answers with status ${response.status}`);
  const answer = truncated ? undefined : parseJson(Buffer.from(bytes).toString());
  if (typeof answer !== "object" || answer === null)
    throw new Unusable("it answers with something that is no verdict");
  return answer;
}

/** Returns a value fit for a header: a client's words are not always ASCII. */
function inHeader(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]/g, "?");
}

function readVerdict(answer: unknown): Junk | null {
  const { action, score, required_score, symbols } = answer as Record<string, unknown>;
  if (typeof action !== "string") throw new Unusable("it answers with something that is no verdict");
  const refuses = action === "reject";
  if (!refuses && action !== "add header" && action !== "rewrite subject") return null;
  const points = `${numberIn(score)} of ${numberIn(required_score)} points`;
  const why = [points, ...strongest(symbols)].join(", ");
  return { verdict: refuses ? "refuse" : "leave_out", why };
}

function numberIn(value: unknown): string {
  return typeof value === "number" ? String(Math.round(value * 10) / 10) : "?";
}

/** Returns the names of the rules with the highest scores. */
function strongest(symbols: unknown): string[] {
  if (typeof symbols !== "object" || symbols === null) return [];
  const scored = Object.entries(symbols as Record<string, { score?: unknown } | null>).map(
    ([name, symbol]) => ({
      name: name.slice(0, MAX_SYMBOL_CHARS),
      score: typeof symbol?.score === "number" ? symbol.score : 0,
    }),
  );
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, SHOWN_SYMBOLS)
    .map(({ name }) => name);
}
