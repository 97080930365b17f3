import { useEffect, useRef } from "react";
import { Button } from "./button.tsx";

interface MoreProps {
  hasMore: boolean;
  busy: boolean;
  onMore: () => void;
}

/** The end of a list that goes on: loads the next page when it comes into view, or by its button. */
export function More({ hasMore, busy, onMore }: MoreProps) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!hasMore || busy || !end.current) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && onMore(), {
      rootMargin: "400px",
    });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [hasMore, busy, onMore]);
  if (!hasMore) return null;
  return (
    <div ref={end} className="flex justify-center py-3">
      <Button busy={busy} onClick={onMore}>
        Show more
      </Button>
    </div>
  );
}
