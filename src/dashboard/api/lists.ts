import { queryOptions } from "@tanstack/react-query";
import { get } from "./client.ts";
import type { Connection, Context, CustomDomain, Endpoint, Inbox, Recipe } from "./shapes.ts";

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

export const recipeList = queryOptions({
  queryKey: ["recipes"],
  queryFn: ({ signal }) => get<Recipe[]>("/recipes", signal),
});

export const endpointList = queryOptions({
  queryKey: ["endpoints"],
  queryFn: ({ signal }) => get<Endpoint[]>("/v1/webhooks", signal),
});
