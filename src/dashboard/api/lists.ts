import { type InfiniteData, type QueryKey, infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { get, queryOf } from "./client.ts";
import type {
  Approval,
  Connection,
  Context,
  CustomDomain,
  Endpoint,
  Inbox,
  Page,
  Recipe,
  Schedule,
  StarredMessage,
  TestRunCard,
} from "./shapes.ts";

/** A list that comes in pages; `data` is what has come of it so far. */
export const paged = <T>(queryKey: QueryKey, path: string, filters: Parameters<typeof queryOf>[0] = {}) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      get<Page<T>>(`${path}?${queryOf({ ...filters, cursor: pageParam })}`, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    select: itemsOf<T>,
  });

export const inboxList = queryOptions({
  queryKey: ["inboxes"],
  queryFn: ({ signal }) => get<Inbox[]>("/inboxes", signal),
});

export const connectionList = queryOptions({
  queryKey: ["connections"],
  queryFn: ({ signal }) => get<Connection[]>("/connections", signal),
});

export const domainList = queryOptions({
  queryKey: ["domains"],
  queryFn: ({ signal }) => get<CustomDomain[]>("/custom-domains", signal),
});

export const contextList = queryOptions({
  queryKey: ["contexts"],
  queryFn: ({ signal }) => get<Context[]>("/contexts", signal),
});

export const scheduleList = queryOptions({
  queryKey: ["schedules"],
  queryFn: ({ signal }) => get<Schedule[]>("/v1/schedules", signal),
});

export const approvalList = paged<Approval>(["approvals"], "/v1/approvals");

/** One more than is counted out. */
const WAITING_SHOWN = 10;

/** How many calls of tools wait for one's yes, as it is shown: "3", or "9+"; empty for none. */
export const waitingApprovals = queryOptions({
  queryKey: [...approvalList.queryKey, "waiting"],
  queryFn: ({ signal }) => get<Page<Approval>>(`/v1/approvals?status=pending&limit=${WAITING_SHOWN}`, signal),
  select: ({ items: { length } }) => (length < WAITING_SHOWN ? String(length || "") : `${length - 1}+`),
});

export const testSet = queryOptions({
  queryKey: ["test-set"],
  queryFn: ({ signal }) => get<StarredMessage[]>("/v1/test-set", signal),
});

export const testRuns = queryOptions({
  queryKey: ["test-runs"],
  queryFn: ({ signal }) => get<TestRunCard[]>("/v1/test-runs", signal),
});

export const recipeList = queryOptions({
  queryKey: ["recipes"],
  queryFn: ({ signal }) => get<Recipe[]>("/recipes", signal),
});

export const endpointList = queryOptions({
  queryKey: ["endpoints"],
  queryFn: ({ signal }) => get<Endpoint[]>("/v1/webhooks", signal),
});

function itemsOf<T>({ pages }: InfiniteData<Page<T>>): T[] {
  return pages.flatMap(({ items }) => items);
}
