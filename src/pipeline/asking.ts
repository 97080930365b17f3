import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { takeTurn } from "../db/rate-limits.ts";
import { userById } from "../db/users.ts";
import { tellOwnerLater } from "../jobs/tell-later.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";
import { addApproval } from "../resources/approvals/approvals.ts";
import { asCode } from "../trust/shown/as-code.ts";
import { plainName, shortTarget } from "../trust/shown/call-name.ts";
import { prepareApprovalLetter } from "./approval-letter.ts";
import type { Ending, Run } from "./close.ts";

/** Letters about requests that an account gets in an hour; beyond them one a day says that more wait. */
const LETTERS = { limit: 20, window_seconds: HOUR_SECONDS };

export interface Asking {
  /** What the answer says of it, in Markdown: whether its reader hears of it is not left to the model. */
  words: string[];
  /** Stores the requests, and queues the letters about them, in the transaction that ends the run. */
  queue: ((tx: Db) => Promise<void>) | undefined;
}

const NOTHING: Asking = { words: [], queue: undefined };

/** Prepares to ask the owner about the calls that a run has held. A run that fails asks nothing: it is done again as a whole. */
export async function prepareAsking(app: App, run: Run, ending: Ending): Promise<Asking> {
  const { message, held: calls } = run;
  if (ending.state !== "done" || calls.length === 0) return NOTHING;
  const [user] = await userById(app.db, { id: message.user_id });
  if (!user) return NOTHING;
  const prepared = await Promise.all(
    calls.map(async (held, at) => ({
      held,
      letter: await prepareApprovalLetter(app, run, { held, user, nth: at + 1 }),
    })),
  );
  const { id: message_id, user_id } = message;
  const limited = { key: `approval_letters:${user_id}`, rule: LETTERS };
  return {
    words: [wordsFor(run)],
    async queue(tx) {
      for (const { held, letter } of prepared) {
        const { args, unnamed: _, ...known } = held;
        const sends = letter !== undefined && takeTurn(app, tx, limited).ok;
        await addApproval(app, tx, {
          ...known,
          user_id,
          inbox_id: run.inbox.id,
          message_id,
          arguments: JSON.stringify(args),
          letter_id: sends ? letter.rfc_message_id : null,
        });
        if (sends) await letter.queue(tx);
        else await tellOwnerLater(app, tx, { user_id, kind: "approvals_waiting" });
      }
    },
  };
}

function wordsFor({ message, held }: Run): string {
  const names = held.map((call) => `${asCode(plainName(call.tool))} of ${asCode(`@${shortTarget(call)}`)}`);
  const what = [...new Set(names)].join(", ");
  const many = held.length > 1 ? `, ${held.length} calls` : "";
  return message.authority === "owner"
    ? `Not done yet, as it waits for your yes: ${what}${many}. A mail of its own shows you what it would do; your answer to that mail decides, or the page “Approvals”.`
    : `Not done yet, as it waits for the yes of the owner of this inbox: ${what}${many}.`;
}
