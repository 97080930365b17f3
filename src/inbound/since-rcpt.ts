import { refusalFor } from "../reasons.ts";
import type { Reception } from "./decide.ts";
import type { Case } from "./standing.ts";

/** For one of several inboxes that was deleted: when the mail comes again, its sender is told so at RCPT. */
const ONE_GONE: Reception = {
  code: 451,
  enhanced: "4.2.1",
  text: "One of the addresses has just been deleted; please try again",
};

/** Returns the answer where an inbox was paused or deleted since RCPT, at which each recipient is checked. */
export function changedSinceRcpt(cases: Case[]): Reception | undefined {
  if (cases.some(({ standing }) => standing?.inbox.paused === "refuse")) return refusalFor("inbox_paused");
  const gone = cases.filter(({ recipient, standing }) => recipient.inbox && !standing);
  return gone.length > 0 && gone.length < cases.length ? ONE_GONE : undefined;
}
