import type { App } from "../../app.ts";
import { AppError } from "../../errors.ts";
import { dnsErrorCode, isNoRecord } from "../../net/dns.ts";
import { type Bench, type Check, fail, type Finding, type Outcome, type Targets } from "./check.ts";
import { DNS_CHECKS, SEE_RESOLVER } from "./dns-checks.ts";
import { MACHINE_CHECKS } from "./machine-checks.ts";
import { MAIL_CHECKS } from "./mail-checks.ts";
import { SETTINGS_CHECKS } from "./settings-checks.ts";
import { WEB_CHECKS } from "./web-checks.ts";
import { networkWords } from "../../net/responses.ts";
import { waitLimit } from "../../lib/wait-limit.ts";

/** How long one check may take; all run at the same time. */
const CHECK_MS = 20_000;

export const TARGETS: Targets = {
  mail_domain: "gmail.com",
  mail_port: 25,
  https_port: 443,
  web_url: "https://example.com/",
};

const CHECKS = [...SETTINGS_CHECKS, ...MACHINE_CHECKS, ...DNS_CHECKS, ...MAIL_CHECKS, ...WEB_CHECKS];

export const CHECK_COUNT = CHECKS.length;

interface Examination {
  running: boolean;
  targets?: Targets;
  check_ms?: number;
  /** Called as each check ends. */
  onEnd?: () => void;
}

/** Runs all checks of what a server needs, and changes nothing. Never rejects. */
export async function examine(
  app: App,
  { running, targets = TARGETS, check_ms = CHECK_MS, onEnd = () => undefined }: Examination,
): Promise<Finding[]> {
  const bench = { app, running, targets };
  const look = async (check: Check): Promise<Finding[]> => {
    const findings = await findingsOf(check, bench, check_ms);
    onEnd();
    return findings;
  };
  return (await Promise.all(CHECKS.map(look))).flat();
}

async function findingsOf({ name, run }: Check, bench: Bench, check_ms: number): Promise<Finding[]> {
  const late = Promise.withResolvers<Outcome>();
  const timer = waitLimit(check_ms, () => late.resolve(tooLate(check_ms)));
  try {
    const outcome = await Promise.race([run(bench), late.promise]);
    return Array.isArray(outcome) ? outcome : [{ name, ...outcome }];
  } catch (error) {
    return [{ name, ...fail(`This could not be looked at: ${networkWords(error)}`, mendOf(error)) }];
  } finally {
    timer.clear();
  }
}

function mendOf(error: unknown): string {
  if (dnsErrorCode(error) !== undefined && !isNoRecord(error)) return SEE_RESOLVER;
  return (
    (error instanceof AppError && error.extras.fix) ||
    "See that this machine and what it asks can reach each other: the network, the firewall, the name in the DNS."
  );
}

function tooLate(check_ms: number): Outcome {
  return fail(
    `There was no end to it within ${check_ms / 1_000} seconds.`,
    "Something holds it up, such as a firewall that drops packets without a word. Try again.",
  );
}
