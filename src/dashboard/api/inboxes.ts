import { queryOptions } from "@tanstack/react-query";
import { get } from "./client.ts";
import type { Inbox } from "./shapes.ts";

export const inboxList = queryOptions({
  queryKey: ["inboxes"],
  queryFn: ({ signal }) => get<Inbox[]>("/inboxes", signal),
});
