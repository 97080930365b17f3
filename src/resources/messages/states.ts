import type { EventType, MessageState } from "../../db/schema.ts";

/** The status of the activity log (decision J, first projection). */
export type ActivityStatus = "received" | "done" | "failed" | "rejected" | "limited";
/** The status of the answer to a call, of events and of polling (second projection). */
export type RunStatus = "processing" | "done" | "failed" | "limited" | "skipped";

interface StateFacts {
  activity: ActivityStatus;
  run: RunStatus;
  event: EventType;
  /** Why a message in this state cannot be cancelled; "" where it can be. */
  ended: string;
  /** Why a message in this state is not tried again; null where it can be. */
  no_retry: { message: string; fix: string } | null;
}

/** What each state of a message means to whoever asks. */
const STATES: Record<MessageState, StateFacts> = {
  received: {
    activity: "received",
    run: "processing",
    event: "message.received",
    ended: "",
    no_retry: {
      message: "This message is still being worked on.",
      fix: "Wait for its end (`GET /v1/messages/{id}`).",
    },
  },
  done: {
    activity: "done",
    run: "done",
    event: "message.completed",
    ended: "is done",
    no_retry: {
      message: "This message is done, so there is nothing to try again.",
      fix: "To have the same done once more, send it again (`POST /v1/messages`).",
    },
  },
  failed: {
    activity: "failed",
    run: "failed",
    event: "message.failed",
    ended: "has failed",
    no_retry: null,
  },
  limited: {
    activity: "limited",
    run: "limited",
    event: "message.skipped",
    ended: "was over a limit",
    no_retry: {
      message: "This message was over the credit limit and was never begun.",
      fix: "Send it again when there are credits (`GET /auth/me` says when).",
    },
  },
  rejected: {
    activity: "rejected",
    run: "failed",
    event: "message.failed",
    ended: "was refused",
    no_retry: {
      message: "This mail was refused, so there is nothing to try again.",
      fix: "See its reason, let the inbox allow its sender if it should, and have it sent again.",
    },
  },
  skipped: {
    activity: "rejected",
    run: "skipped",
    event: "message.skipped",
    ended: "was left out",
    no_retry: {
      message: "This mail was left out, so there is nothing to try again.",
      fix: "See its reason. If it should be worked on, change what left it out and have it written anew: the same mail, sent once more, is known here.",
    },
  },
};

const DAMAGED: StateFacts = {
  ...STATES.failed,
  no_retry: {
    message: "What became of this message cannot be read any more: the database is damaged there.",
    fix: "Send it again if it still matters.",
  },
};

/** What the state of a message means. An unknown state, as a damaged disk may leave one, is shown as failed. */
export function factsOf(state: MessageState): StateFacts {
  return Object.hasOwn(STATES, state) ? STATES[state] : DAMAGED;
}

/** The states that the activity log shows as `status`. */
export function statesOf(status: ActivityStatus): MessageState[] {
  return (Object.keys(STATES) as MessageState[]).filter((state) => STATES[state].activity === status);
}
