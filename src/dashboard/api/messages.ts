import { paged } from "./lists.ts";
import type { Activity, Conversation } from "./shapes.ts";

/** What a list of messages is narrowed by; what is absent lets everything through. */
export interface MessageFilters {
  status?: Activity["status"];
  source?: Activity["source"];
  inbox_id?: string;
  conversation_id?: string;
}

export const messageList = (filters: MessageFilters) =>
  paged<Activity>(["messages", filters], "/messages", { ...filters });

export const conversationList = paged<Conversation>(["conversations"], "/conversations");
