import type { App } from "../../app.ts";

/** `skip`: it does not apply, or cannot be seen now. */
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

/** Addresses that the checks ask; the defaults are in `doctor.ts`. */
export interface Targets {
  /** To whose mail servers a connection is tried. */
  mail_domain: string;
  /** The port of mail servers, ours and theirs: 25 but in tests. */
  mail_port: number;
  /** The port of the host that publishes the policy: 443 but in tests. */
  https_port: number;
  /** A page of somebody else's, to be asked for as webhooks are. */
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
  /** Several findings for a check that looks at several things. */
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
