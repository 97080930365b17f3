import { infiniteQueryOptions } from "@tanstack/react-query";
import { get } from "./client.ts";
import type { Activity, Conversation, Page } from "./shapes.ts";

/** What a list of messages is narrowed by; what is absent lets everything through. */
export interface MessageFilters {
  status?: Activity["status"];
  source?: Activity["source"];
  inbox_id?: string;
  conversation_id?: string;
}

export const messageList = (filters: MessageFilters) =>
  infiniteQueryOptions({
    queryKey: ["messages", filters],
    queryFn: ({ pageParam, signal }) =>
      get<Page<Activity>>(`/messages?${queryOf({ ...filters, cursor: pageParam })}`, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

/** The members that are set, as the query of an address. */
export function queryOf(members: Record<string, string | number | undefined>): URLSearchParams {
  const set = Object.entries(members).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(set.map(([name, value]) => [name, String(value)]));
}

export const conversationList = infiniteQueryOptions({
  queryKey: ["conversations"],
  queryFn: ({ pageParam, signal }) =>
    get<Page<Conversation>>(`/conversations?${queryOf({ cursor: pageParam })}`, signal),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});
