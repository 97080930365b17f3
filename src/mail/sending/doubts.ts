import { HOUR_SECONDS } from "../../lib/durations.ts";

/** How long our name server has to say the same of a recipient's domain before it is believed. */
const BELIEVED_AFTER_SECONDS = 4 * HOUR_SECONDS;
const DOUBTED = "It is asked again before this is believed: ";

interface Tries {
  /** What the last try came to. */
  mail: { response: string | null };
  failures: number;
  /** `outbound.retry` */
  retry: readonly number[];
}

/**
 * Returns the outcome of an attempt, put off for as long as only a look-up of ours says that there is no way to the
 * recipient: at all tries of some hours, and at the one before, or no try must be left.
 */
export function believed<Outcome extends { status: string; response: string; of_lookup?: true }>(
  outcome: Outcome,
  { mail, failures, retry }: Tries,
): Outcome | { status: "deferred"; response: string } {
  if (outcome.of_lookup !== true || retry[failures] === undefined) return outcome;
  const waited = retry.slice(0, failures).reduce((sum, seconds) => sum + seconds, 0);
  const is_known = waited >= BELIEVED_AFTER_SECONDS && mail.response?.startsWith(DOUBTED) === true;
  return is_known ? outcome : { status: "deferred", response: DOUBTED + outcome.response };
}
