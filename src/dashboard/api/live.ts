import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

/** How long news may gather before the lists are read anew: a flood of mail must not become a flood of calls. */
const GATHER_MS = 400;

/** Keeps what shows messages up to date while the page is open, by the server's own word (server-sent events). */
export function useLiveMessages(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        for (const queryKey of [["messages"], ["conversations"], ["story"]])
          void queries.invalidateQueries({ queryKey });
      }, GATHER_MS);
    };
    const stream = new EventSource("/messages/stream");
    stream.addEventListener("message", refresh);
    stream.addEventListener("changed", refresh);
    return () => {
      clearTimeout(timer);
      stream.close();
    };
  }, [queries]);
}
