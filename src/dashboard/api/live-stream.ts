import type { Activity } from "./shapes.ts";

const STREAM = "/messages/stream";
/** Each failure in a row doubles it. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A stream ends now and then, and the next one opens at once: only a second failure in a row is worth a word. */
const FAILURES_TOLD = 2;

export interface Hearer {
  /** A message that is new or has changed; null when much may have happened, and one has to look. */
  news: (message: Activity | null) => void;
  /** The first stream of this page has opened: hardly anything can have happened since the page was loaded. */
  begun: () => void;
  /** Something happened at that moment, before the stream opened: a list that was read later shows it. */
  missed: (at_ms: number) => void;
  live: (is_live: boolean) => void;
}

/** A message between the tabs of a browser. */
type Word = { news: Activity | null } | { live: boolean } | "how is it?";

/**
 * Hears of the user's messages until `gone`. All tabs of a browser share one stream, since the server gives an account
 * only a few: the tab that holds the lock has it, and passes on what it says. Browsers have locks for secure origins
 * only; elsewhere each tab opens its own.
 */
export function hearOfMessages(user_id: string, hearer: Hearer, gone: AbortSignal): void {
  if (!("locks" in navigator)) {
    keepStream(hearer, gone);
    return;
  }
  const name = `mailwright-live:${user_id}`;
  const others = new BroadcastChannel(name);
  const tell = (word: Word): void => others.postMessage(word);
  /** Whether the stream is open, in the tab that has it. */
  let state: boolean | undefined;
  others.addEventListener("message", ({ data }: MessageEvent<Word>) => {
    if (data !== "how is it?") {
      if ("live" in data) hearer.live(data.live);
      else hearer.news(data.news);
    } else if (state !== undefined) tell({ live: state });
  });
  gone.addEventListener("abort", () => others.close());
  tell("how is it?");
  const lead = async (): Promise<void> => {
    if (gone.aborted) return;
    const all: Hearer = {
      news(message) {
        hearer.news(message);
        tell({ news: message });
      },
      begun() {
        hearer.begun();
        // To the other tabs it is a stream after another one.
        tell({ news: null });
      },
      missed: (at_ms) => hearer.missed(at_ms),
      live(is_live) {
        state = is_live;
        hearer.live(is_live);
        tell({ live: is_live });
      },
    };
    keepStream(all, gone);
    await new Promise((resolve) => {
      gone.addEventListener("abort", resolve);
    });
  };
  navigator.locks.request(name, { signal: gone }, lead).catch((error: unknown) => {
    if (!gone.aborted) throw error;
  });
}

/** Opens the stream anew whenever it breaks off, after pauses that grow: a browser gives up for ever when it is refused. */
function keepStream({ news, begun, missed, live }: Hearer, gone: AbortSignal): void {
  let failures = 0;
  let has_begun = false;
  let stream: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = (): void => {
    clearTimeout(timer);
    timer = undefined;
    stream = new EventSource(STREAM);
    stream.addEventListener("open", () => {
      failures = 0;
      live(true);
      // It tells nothing of what happened before.
      if (has_begun) news(null);
      else begun();
      has_begun = true;
    });
    stream.addEventListener("message", ({ data }: MessageEvent<string>) => {
      news(JSON.parse(data) as Activity);
    });
    stream.addEventListener("changed", ({ data }: MessageEvent<string>) => {
      const { seconds_ago } = JSON.parse(data) as { seconds_ago?: number };
      if (seconds_ago === undefined) news(null);
      else missed(Date.now() - seconds_ago * 1_000);
    });
    stream.addEventListener("error", () => {
      stream?.close();
      failures += 1;
      if (failures >= FAILURES_TOLD) live(false);
      timer = setTimeout(open, pauseAfter(failures));
    });
  };
  open();
  addEventListener("online", () => timer !== undefined && open(), { signal: gone });
  gone.addEventListener("abort", () => {
    clearTimeout(timer);
    stream?.close();
  });
}

/** Returns a random pause before the next try, so that not all come back to a server at once. */
function pauseAfter(failures: number): number {
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
  return pause * (0.75 + Math.random() / 4);
}
