import { useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { inboxList } from "../../api/lists.ts";
import { rememberWay, session, type Way } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { isPage } from "../../shell/own-paths.ts";

export interface WayProps {
  /** Whether the page has opened on it, so that one can type at once. */
  opened: boolean;
  email: string;
  onEmail: (email: string) => void;
}

/** Goes on to where the person wanted to be; who has no address yet is shown how to get one. */
export function useWelcome(way: Way): (me: Me) => Promise<void> {
  const queries = useQueryClient();
  const router = useRouter();
  const { to } = useSearch({ from: "/sign-in" });
  return async (me) => {
    rememberWay(way);
    if (to !== undefined && !isPage(to)) return location.assign(to);
    queries.setQueryData(session.queryKey, me);
    const isNew = to === undefined && (await queries.fetchQuery(inboxList)).length === 0;
    router.history.push(to ?? (isNew ? "/app/welcome" : "/app"));
  };
}
