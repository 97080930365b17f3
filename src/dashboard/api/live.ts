import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { get } from "./client.ts";
import { hearOfMessages } from "./live-stream.ts";
import { askForLife } from "./reach.ts";
import { useMe } from "./session.ts";
import type { Activity, Page, Story } from "./shapes.ts";

/** How long news gather before a list looks: a flood of mail must not become a flood of calls. */
const GATHER_MS = 300;
const PAUSE_MS = 2_000;
/** How often the lists look by themselves while there is no stream. */
export const LOOK_SECONDS = 30;
/** Messages under way, of those that are shown, that are asked for one by one when nobody knows what happened. */
const MAX_ASKED = 20;

let is_live = true;
const watchers = new Set<() => void>();
const lists = new Set<Look>();

/** `at_ms`: when something happened, or had the time to, at the latest; 0 where nothing is known of. */
type Look = (at_ms: number) => void;

/** Whether news come by themselves just now. */
export function useIsLive(): boolean {
  return useSyncExternalStore(watch, () => is_live);
}

/** Has `look` called when something may have come to the head of a list; what is given ends it. */
export function onNews(look: Look): () => void {
  lists.add(look);
  return () => lists.delete(look);
}

/** Keeps what shows messages up to date while the page is open, by the server's own word (server-sent events). */
export function useLiveMessages(): void {
  const queries = useQueryClient();
  const { id } = useMe();
  useEffect(() => {
    const gone = new AbortController();
    const haveListsLook = gathering(gone.signal);
    const news = (message: Activity | null): void => {
      if (message) show(queries, message);
      else lookAgain(queries);
      haveListsLook(Date.now());
    };
    const begun = (): void => {
      lookAgain(queries);
      haveListsLook(0);
    };
    hearOfMessages(id, { news, begun, missed: haveListsLook, live }, gone.signal);
    const timer = setInterval(() => !is_live && news(null), LOOK_SECONDS * 1_000);
    return () => {
      clearInterval(timer);
      gone.abort();
      live(true);
    };
  }, [queries, id]);
}

function live(now: boolean): void {
  if (!now) void askForLife();
  is_live = now;
  for (const heard of watchers) heard();
}

function watch(heard: () => void): () => void {
  watchers.add(heard);
  return () => watchers.delete(heard);
}

/** At most one look in a while, and none while nobody can see it. */
function gathering(gone: AbortSignal): Look {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = 0;
  let is_owed = false;
  let latest = 0;
  const look = (): void => {
    timer = undefined;
    is_owed = document.hidden;
    if (is_owed) return;
    last = Date.now();
    for (const each of lists) each(latest);
    latest = 0;
  };
  const gather: Look = (at_ms) => {
    latest = Math.max(latest, at_ms);
    timer ??= setTimeout(look, Math.max(GATHER_MS, last + PAUSE_MS - Date.now()));
  };
  document.addEventListener("visibilitychange", () => is_owed && gather(0), { signal: gone });
  gone.addEventListener("abort", () => clearTimeout(timer));
  return gather;
}

type Pages = InfiniteData<Page<Activity>>;

/** Shows a changed message: in lists it changes in its place, its story and its conversation are read anew. */
function show(queries: QueryClient, message: Activity): void {
  const { message_id, conversation_id, retry_of } = message;
  for (const [queryKey, data] of queries.getQueriesData<Pages>({ queryKey: ["messages"] })) {
    const pages = data && withChanged(data.pages, message);
    // The rest of the list is as old as it was.
    const updatedAt = queries.getQueryState(queryKey)?.dataUpdatedAt ?? 0;
    if (pages) queries.setQueryData(queryKey, { ...data, pages }, { updatedAt });
  }
  for (const queryKey of [
    ["story", message_id],
    ["story", retry_of],
    ["conversation", conversation_id],
  ])
    void queries.invalidateQueries({ queryKey });
}

/** Undefined where the message is on none of them. */
function withChanged(pages: Page<Activity>[], message: Activity): Page<Activity>[] | undefined {
  for (const [number, page] of pages.entries()) {
    const at = page.items.findIndex(({ message_id }) => message_id === message.message_id);
    if (at >= 0) return pages.with(number, { ...page, items: page.items.with(at, message) });
  }
  return undefined;
}

function lookAgain(queries: QueryClient): void {
  for (const queryKey of [["story"], ["conversation"]]) void queries.invalidateQueries({ queryKey });
  for (const message_id of underWay(queries).slice(0, MAX_ASKED))
    get<Story>(`/messages/${message_id}`).then(
      (story) => show(queries, story),
      // The next look comes, and says what is wrong if nothing does.
      () => undefined,
    );
}

function underWay(queries: QueryClient): string[] {
  return queries
    .getQueriesData<Pages>({ queryKey: ["messages"], type: "active" })
    .flatMap(([, data]) => data?.pages ?? [])
    .flatMap(({ items }) => items)
    .filter(({ status }) => status === "received")
    .map(({ message_id }) => message_id);
}
