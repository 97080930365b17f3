import { queryOptions } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import type { Overview, ServerDays } from "../../api/shapes.ts";

const OVERVIEW_MS = 10_000;
/** How often the figures of the days are asked for: each time, all of today is counted. */
const DAYS_MS = 60_000;

export const overview = queryOptions({
  queryKey: ["admin", "overview"],
  queryFn: ({ signal }) => get<Overview>("/admin/overview", signal),
  refetchInterval: OVERVIEW_MS,
});

/** The last 30 days, today at the end. */
export const serverDays = queryOptions({
  queryKey: ["admin", "days"],
  queryFn: ({ signal }) => get<ServerDays>("/admin/days", signal),
  refetchInterval: DAYS_MS,
});
