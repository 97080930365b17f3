import type { App } from "../../app.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { byteStreamOf } from "../../net/byte-stream.ts";
import type { Feed } from "../../lib/feed.ts";
import { messagePortions, readActivity } from "./list.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

const MAX_STREAMS = 5;
/** The most streams that all accounts together may have open. */
const MAX_ALL_STREAMS = 1_000;
const RETRY_SECONDS = 30;
/** How long a stream is silent before a comment is sent, so that no proxy takes the connection for dead. */
const QUIET_MS = 20_000;
/** How long a stream lasts. Then the browser connects again, and shows anew who it is. */
const STREAM_SECONDS = HOUR_SECONDS;
/** The most changes that wait to be sent; if there are more, the reader is told to look for itself. */
const MAX_WAITING = 100;
const SENT_AT_ONCE = 10;

const BEGIN = "retry: 2000\n\n";
const COMMENT = ": nothing new\n\n";
const HINT = "event: changed\ndata: {}\n\n";
const hintOfBefore = (seconds_ago: number): string =>
  `event: changed\ndata: {"seconds_ago":${seconds_ago}}\n\n`;

/**
 * Server-sent events about the user's messages, from now on; `mayStay` is asked before anything is told. A stream that
 * opens shortly after a change begins with the hint to look. What is
 * waiting for a slow reader is a bounded number of ids, and each message is read when it is its turn.
 */
export function streamMessages(
  app: App,
  user: UserRow,
  reader: { mayStay: () => Promise<boolean>; gone: AbortSignal },
): ReadableStream<Uint8Array> {
  refuseMany(app.changes, user);
  // Whoever has read a list just before may have read it before that.
  const seconds_ago = app.changes.toldBefore(user.id);
  const desk = openDesk(app.changes, user.id);
  reader.gone.addEventListener("abort", desk.close, { once: true });
  const words = streamEvents(app, user, { desk, mayStay: reader.mayStay, seconds_ago });
  return byteStreamOf(words, {
    onError(error) {
      desk.close();
      app.log.error({ err: error }, "a stream of messages broke off");
    },
    onLeave: desk.close,
  });
}

function refuseMany(changes: Feed, user: UserRow): void {
  if (changes.listeners(user.id) >= MAX_STREAMS)
    throw new AppError("rate_limited", `There are ${MAX_STREAMS} streams of this account open already.`, {
      fix: "Close another window, or wait for one of them to end.",
      retry_after_seconds: RETRY_SECONDS,
    });
  if (changes.total() >= MAX_ALL_STREAMS)
    throw new AppError("unavailable", "Too many streams are open on this server.", {
      fix: "Load the list now and then (`GET /messages`), or try again in a minute.",
      retry_after_seconds: RETRY_SECONDS,
    });
}

/** The ids that wait to be told to one reader. */
interface Desk {
  /** Resolves when there is something to tell, when all is over, and after `ms`. */
  news(ms: number): Promise<void>;
  /** Takes the next few ids. */
  take(): string[];
  /** Whether there were too many ids to keep, since the last time this was asked. */
  takeMissed(): boolean;
  isOver(): boolean;
  close: () => void;
}

function openDesk(changes: Feed, user_id: string): Desk {
  const waiting = new Set<string>();
  let missed = false;
  let over = false;
  let ring = (): void => undefined;
  const stop = changes.listen(user_id, (id) => {
    if (id === null) over = true;
    else if (!missed) waiting.add(id);
    if (waiting.size > MAX_WAITING) {
      waiting.clear();
      missed = true;
    }
    ring();
  });
  return {
    async news(ms) {
      if (over || missed || waiting.size > 0) return;
      const rung = Promise.withResolvers<void>();
      ring = rung.resolve;
      const timer = setTimeout(ring, ms);
      await rung.promise;
      clearTimeout(timer);
    },
    take() {
      const ids = [...waiting].slice(0, SENT_AT_ONCE);
      for (const id of ids) waiting.delete(id);
      return ids;
    },
    takeMissed() {
      const was = missed;
      missed = false;
      return was;
    },
    isOver: () => over,
    close() {
      over = true;
      stop();
      ring();
    },
  };
}

async function* streamEvents(
  app: App,
  user: UserRow,
  {
    desk,
    mayStay,
    seconds_ago,
  }: { desk: Desk; mayStay: () => Promise<boolean>; seconds_ago: number | undefined },
): AsyncGenerator<Uint8Array> {
  const until = app.steadyNow() + STREAM_SECONDS;
  try {
    yield Buffer.from(BEGIN);
    if (seconds_ago !== undefined) yield Buffer.from(hintOfBefore(seconds_ago));
    for (;;) {
      await desk.news(QUIET_MS);
      if (desk.isOver() || app.steadyNow() >= until || !(await mayStay())) return;
      if (desk.takeMissed()) yield Buffer.from(HINT);
      else for await (const words of tell(app, user, { ids: desk.take(), mayStay })) yield Buffer.from(words);
    }
  } finally {
    desk.close();
  }
}

/**
 * Tells the messages of some ids. Each portion is read once the one before it has been taken, which may be long
 * after.
 */
async function* tell(
  app: App,
  user: UserRow,
  { ids, mayStay }: { ids: string[]; mayStay: () => Promise<boolean> },
): AsyncGenerator<string> {
  const portions = await messagePortions(app.db, ids);
  if (portions.length === 0) yield COMMENT;
  for (const portion of portions.toReversed()) {
    if (!(await mayStay())) return;
    const messages = await readActivity(app, user, portion);
    yield messages
      .toReversed()
      .map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`)
      .join("");
  }
}
