import { useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { inboxList } from "../../api/lists.ts";
import { takeZone } from "../../api/own-zone.ts";
import { rememberWay, session, type Way } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { isPage } from "../../shell/own-paths.ts";

export interface WayProps {
  /** Whether the page opened with this way, so that its field has the focus. */
  opened: boolean;
  email: string;
  onEmail: (email: string) => void;
}

/** Returns a function that goes on to the page that the person wanted; without an inbox, to the first steps. */
export function useWelcome(way: Way): (me: Me) => Promise<void> {
  const queries = useQueryClient();
  const router = useRouter();
  const { to } = useSearch({ from: "/sign-in" });
  return async (me) => {
    rememberWay(way);
    if (to !== undefined && !isPage(to)) return location.assign(to);
    queries.setQueryData(session.queryKey, me);
    const has_none = (await queries.fetchQuery(inboxList)).length === 0;
    if (has_none) queries.setQueryData(session.queryKey, await takeZone(me));
    router.history.push(to ?? (has_none ? "/app/welcome" : "/app"));
  };
}
