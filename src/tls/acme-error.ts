import { AppError, messageOf, fullText } from "../errors.ts";
import type { Config } from "../config/config.ts";

/** A problem reported by an authority (RFC 8555 §6.7). */
export interface AcmeProblem {
  /** Such as `urn:ietf:params:acme:error:dns`; empty when none was given. */
  type: string;
  detail: string;
  /** The name it is about; empty when it is about the request as a whole. */
  name: string;
}

/** Thrown when the authority does not issue the certificate. */
export class AcmeError extends Error {
  readonly problems: AcmeProblem[];
  /** Seconds to wait that the authority asked for. */
  readonly retry_after_seconds: number | null;

  constructor(problems: AcmeProblem[], extras: { retry_after_seconds?: number | null } = {}) {
    super(problems.map(({ name, detail }) => (name === "" ? detail : `${name}: ${detail}`)).join(" "));
    this.name = "AcmeError";
    this.problems = problems;
    this.retry_after_seconds = extras.retry_after_seconds ?? null;
  }
}

const MAX_DETAIL_CHARS = 300;

/** Returns why there is no certificate and what to do about it, in whole sentences. */
export function reasonOf(error: unknown, { acme }: Config): string {
  if (error instanceof AcmeError) return error.problems.map((problem) => sentenceOf(problem, acme)).join(" ");
  if (error instanceof AppError) return fullText(error);
  return error instanceof Error && error.name === "TimeoutError"
    ? "The authority took too long."
    : `It could not be stored or asked for: ${messageOf(error)}.`;
}

/** The sentence that fits a kind of problem; `who` is the name in question. */
const SENTENCES: Record<string, (who: string, acme: Config["acme"]) => string> = {
  connection: (who, { listen }) =>
    `The authority got no connection to http://${who}/ on port 80. Let port 80 through the firewall and the router to ${listen === "" ? "the program that serves it" : `acme.listen (${listen})`}.`,
  dns: (who) =>
    `The name ${who} cannot be looked up. Publish an A or AAAA record that points it to this machine.`,
  unauthorized: (who) =>
    `Not this server answered at http://${who}/. Point its A and AAAA records here, both of them, or have the program on port 80 pass /.well-known/acme-challenge/ on.`,
  incorrectResponse: (who) =>
    `Another answer than ours came from http://${who}/. Point its A and AAAA records here, both of them, or have the program on port 80 pass /.well-known/acme-challenge/ on.`,
  caa: (who) =>
    `A CAA record of ${who} forbids this authority. Add one that names it, or take the record away.`,
  rateLimited: () => "The authority gives no more certificates for now. Nothing is to be done but to wait.",
  rejectedIdentifier: (who) =>
    `The authority gives no certificate for ${who}. Set acme.names to public names of this machine.`,
  unsupportedIdentifier: (who) =>
    `The authority gives no certificate for ${who}. Set acme.names to public names of this machine.`,
  invalidContact: () => "The authority does not take the address in acme.email. Set another, or none.",
  unsupportedContact: () => "The authority does not take the address in acme.email. Set another, or none.",
  externalAccountRequired: () =>
    "The authority wants an account that was made with it beforehand, which this server does not support. Name another in acme.directory.",
  userActionRequired: () => "The authority wants its operator's customer to do something first.",
};

function sentenceOf({ type, detail, name }: AcmeProblem, acme: Config["acme"]): string {
  const kind = type.replace("urn:ietf:params:acme:error:", "");
  const sentence = SENTENCES[kind]?.(name || "one of the names", acme) ?? "The authority refused.";
  const shown = detail.length > MAX_DETAIL_CHARS ? `${detail.slice(0, MAX_DETAIL_CHARS)}…` : detail;
  return shown === "" ? sentence : `${sentence} (It says: ${shown})`;
}
