import { queryOptions, useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { get, post } from "./client.ts";
import type { Me, ServerFacts } from "./shapes.ts";

/** The signed-in user; null when nobody is. */
export const session = queryOptions({
  queryKey: ["me"],
  staleTime: 60_000,
  queryFn: async ({ signal }): Promise<Me | null> =>
    (await get<{ me: Me | null }>("/auth/session", signal)).me,
});

/** The facts of the server that anybody may know. */
export const serverFacts = queryOptions({
  queryKey: ["server-facts"],
  queryFn: ({ signal }) => get<ServerFacts>("/server", signal),
});

/** The account that is signed in; only below pages that ask for one. */
export function useMe(): Me {
  const { data } = useSuspenseQuery(session);
  if (!data) throw new Error("Nobody is signed in on this page.");
  return data;
}

/** Whether plans and credits can be bought here; false as long as that is not known. */
export function useSold(): boolean {
  return useQuery(serverFacts).data?.payments ?? false;
}

export type Way = "code" | "password";

const WAY = "sign-in-way";

/** How somebody signed in on this browser last: the server tells nobody what an account has. */
export function lastWay(): Way {
  return localStorage.getItem(WAY) === "password" ? "password" : "code";
}

export function rememberWay(way: Way): void {
  localStorage.setItem(WAY, way);
}

/** `next`: the page that is opened then. */
export function useSignOut(next = "/app/sign-in") {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => post("/auth/logout"),
    onSuccess: () => {
      queries.clear();
      location.assign(next);
    },
  });
}
