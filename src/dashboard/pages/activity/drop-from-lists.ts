import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import type { Activity, Page } from "../../api/shapes.ts";

/** Takes messages out of every list that has been read, without reading any of them again. */
export function dropFromLists(queries: QueryClient, message_ids: string[]): void {
  const gone = new Set(message_ids);
  const without = (page: Page<Activity>) => ({
    ...page,
    items: page.items.filter(({ message_id }) => !gone.has(message_id)),
  });
  queries.setQueriesData<InfiniteData<Page<Activity>>>(
    { queryKey: ["messages"] },
    (data) => data && { ...data, pages: data.pages.map(without) },
  );
  // Else they would be taken for what has newly come.
  queries.setQueriesData<Page<Activity>>({ queryKey: ["head", "messages"] }, (page) => page && without(page));
}
