import { useEffect, useRef } from "react";
import { Button } from "./button.tsx";

interface MoreProps {
  of: {
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    /** Then it is not asked for again by itself. */
    isFetchNextPageError: boolean;
    fetchNextPage: () => unknown;
  };
}

/** The end of a list that goes on: loads the next page when it comes into view, or by its button. */
export function More({ of }: MoreProps) {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = of;
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!hasNextPage || isFetchingNextPage || isFetchNextPageError || !end.current) return;
    // A busy browser tells of several moves at once: the last is where the end is now.
    const watch = new IntersectionObserver((moves) => moves.at(-1)?.isIntersecting && fetchNextPage(), {
      rootMargin: "400px",
    });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  if (!hasNextPage) return null;
  return (
    <div ref={end} className="flex justify-center py-3">
      <Button busy={isFetchingNextPage} onClick={() => fetchNextPage()}>
        Show more
      </Button>
    </div>
  );
}
