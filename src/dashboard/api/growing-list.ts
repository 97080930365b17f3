import {
  type InfiniteData,
  keepPreviousData,
  type QueryKey,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { onNews } from "./live.ts";
import { newsIn } from "./news.ts";
import type { Page } from "./shapes.ts";

/** How long entries that were just read count as new enough. */
const FRESH_MS = 2_000;
/** How long after a list was read the live stream may open and nothing but its newest entry be asked for. */
const JUST_READ_MS = 10_000;

/** A list of which new entries come to the head. */
export interface GrowingList<T> {
  queryKey: QueryKey;
  read: (cursor: string | undefined, signal: AbortSignal, limit?: number) => Promise<Page<T>>;
  /** Returns what tells an entry from every other; one that comes to the head again is another one. */
  versionOf: (item: T) => string;
}

/**
 * A growing list, page by page, for somebody who reads it. What comes in shows at once to who is at its top; for who is
 * further down nothing moves, and `unseen` has what there is.
 */
export function useGrowingList<T>({ queryKey, read, versionOf }: GrowingList<T>, isAtTop: () => boolean) {
  const queries = useQueryClient();
  /** When the first page was asked for last (ms): what had happened by then is in it. */
  const asked_at = useRef(0);
  const pages = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => {
      if (pageParam === undefined) asked_at.current = Date.now();
      return read(pageParam, signal);
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    // A look at its head brings it up to date; nobody reads all pages of a long list again.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnMount: false,
    structuralSharing: false,
  });
  const is_read = pages.isSuccess && !pages.isPlaceholderData;
  const items = useMemo(() => pages.data?.pages.flatMap((page) => page.items) ?? [], [pages.data]);
  const known = useMemo(() => new Set(items.map(versionOf)), [items, versionOf]);
  const head = useHead({ queryKey, read });
  const waiting = is_read ? (head.data?.items ?? []) : [];
  const unseen = newsIn(waiting, known, versionOf);

  const [came, setCame] = useState(0);
  /** The entries that are counted in it. */
  const told = useRef(new Set<string>());
  /** The moment (ms) of what a look was for that could not be had while the list was being read. */
  const owed = useRef<number>(undefined);
  const showHead = async (page: Page<T>): Promise<void> => {
    const pageParams = [undefined];
    // A next page on its way would bring the old ones back.
    await queries.cancelQueries({ queryKey, exact: true });
    queries.setQueryData<InfiniteData<Page<T>, string | undefined>>(queryKey, { pages: [page], pageParams });
  };
  /** Whether the list has been read just now and its newest entry is the newest one still. */
  const isSame = async (): Promise<boolean> => {
    if (pages.dataUpdatedAt < Date.now() - JUST_READ_MS) return false;
    const newest = await queries
      .fetchQuery({
        queryKey: ["newest", ...queryKey],
        queryFn: ({ signal }) => read(undefined, signal, 1),
        gcTime: 0,
      })
      .catch(() => null);
    return newest !== null && newest.items.every((item) => known.has(versionOf(item)));
  };
  const look = useEffectEvent(async (at_ms: number) => {
    owed.current = is_read ? undefined : Math.max(at_ms, owed.current ?? 0);
    const is_news = at_ms > asked_at.current;
    // The live stream has only opened: most often nothing has come since the list was read.
    if (!is_read || (!is_news && (await isSame()))) return;
    const now = Date.now();
    const { data, isSuccess } = await head.refetch();
    if (!isSuccess) return;
    asked_at.current = now;
    const fresh = newsIn(data.items, known, versionOf).map(versionOf);
    // Two looks at the same time find the same.
    const untold = fresh.filter((version) => !told.current.has(version));
    for (const version of untold) told.current.add(version);
    setCame((count) => count + untold.length);
    if (isAtTop()) await showHead(data);
  });
  useEffect(() => onNews((at_ms) => void look(at_ms)), []);
  const catchUp = useEffectEvent((is_read: boolean, read_at: number) => {
    const is_old = read_at < Date.now() - FRESH_MS;
    if (is_read && (owed.current !== undefined || is_old))
      void look(is_old ? Date.now() : (owed.current ?? 0));
  });
  // News came while it was being read, or an earlier visit has left it.
  useEffect(() => catchUp(is_read, pages.dataUpdatedAt), [is_read, pages.dataUpdatedAt]);

  return {
    pages,
    head,
    items,
    unseen,
    showUnseen: async () => head.data && showHead(head.data),
    /** How many entries have come since the page was opened. */
    came,
    /** How many of the last pages had nothing, as happens where a filter finds little. */
    emptyPages: emptyAtEnd(pages.data?.pages ?? []),
  };
}

/** The first page as it is now, once it has been asked for. */
function useHead<T>({ queryKey, read }: Pick<GrowingList<T>, "queryKey" | "read">) {
  return useQuery({
    queryKey: ["head", ...queryKey],
    queryFn: ({ signal }) => read(undefined, signal),
    enabled: false,
    gcTime: 0,
    structuralSharing: false,
  });
}

function emptyAtEnd(pages: Page<unknown>[]): number {
  return pages.length - 1 - pages.findLastIndex(({ items }) => items.length > 0);
}
