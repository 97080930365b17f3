import type { App } from "../../app.ts";

/** The result of a check. `skip`: it does not apply, or cannot be checked now. */
export type Verdict = "ok" | "warn" | "fail" | "skip";

export interface Outcome {
  verdict: Verdict;
  /** The finding as a sentence. */
  found: string;
  /** A sentence on how to mend it. */
  mend?: string;
}

export interface Finding extends Outcome {
  name: string;
}

/** Addresses that the checks contact; the defaults are in `doctor.ts`. */
export interface Targets {
  /** The domain to whose mail servers a connection is tried. */
  mail_domain: string;
  /** The port of mail servers, ours and theirs: 25 except in tests. */
  mail_port: number;
  /** The port of the host with the MTA-STS policy: 443 except in tests. */
  https_port: number;
  /** A page on another server, fetched in the way webhooks are delivered. */
  web_url: string;
  /** A certificate authority (PEM) in place of the built-in ones. */
  ca?: string;
}

export interface Bench {
  app: App;
  /** Whether a server runs on the data folder. */
  running: boolean;
  targets: Targets;
}

export interface Check {
  name: string;
  /** Returns several findings for a check of several things. */
  run: (bench: Bench) => Promise<Outcome | Finding[]>;
}

export function ok(found: string): Outcome {
  return { verdict: "ok", found };
}

export function skip(found: string): Outcome {
  return { verdict: "skip", found };
}

export function warn(found: string, mend: string): Outcome {
  return { verdict: "warn", found, mend };
}

export function fail(found: string, mend: string): Outcome {
  return { verdict: "fail", found, mend };
}
