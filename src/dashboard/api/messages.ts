import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import { get, queryOf } from "./client.ts";
import type { GrowingList } from "./growing-list.ts";
import type { Activity, Conversation, Page } from "./shapes.ts";

/** The filters of a list of messages; one that is absent lets everything through. */
export interface MessageFilters {
  status?: Activity["status"] | undefined;
  source?: Activity["source"] | undefined;
  inbox_id?: string | undefined;
  q?: string | undefined;
  tag?: string | undefined;
  /** Unix seconds, both included. */
  since?: number | undefined;
  until?: number | undefined;
}

export const messageList = (filters: MessageFilters): GrowingList<Activity> => ({
  queryKey: ["messages", filters],
  read: (cursor, signal, limit) =>
    get<Page<Activity>>(`/messages?${queryOf({ ...filters, cursor, limit })}`, signal),
  versionOf: idOf,
});

/** What has been read of a list so far. */
export function readSoFar(queries: QueryClient, { queryKey }: GrowingList<Activity>): Activity[] {
  const data = queries.getQueryData<InfiniteData<Page<Activity>>>(queryKey);
  return data?.pages.flatMap(({ items }) => items) ?? [];
}

export const conversationList: GrowingList<Conversation> = {
  queryKey: ["conversations"],
  read: (cursor, signal, limit) =>
    get<Page<Conversation>>(`/conversations?${queryOf({ cursor, limit })}`, signal),
  // An answer brings it back to the head.
  versionOf: ({ id, last_at }) => `${id} ${last_at}`,
};

const idOf = ({ message_id }: Activity): string => message_id;
