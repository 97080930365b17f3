import { useBlocker } from "@tanstack/react-router";
import { Leave } from "./dialog.tsx";

/** Asks before a page with changes that are not saved is left. */
export function Unsaved({ changed }: { changed: boolean }) {
  const leaving = useBlocker({
    shouldBlockFn: () => changed,
    enableBeforeUnload: changed,
    withResolver: true,
  });
  if (leaving.status !== "blocked") return null;
  return (
    <Leave stay="Stay here" onLeave={leaving.proceed} onStay={leaving.reset}>
      What you have changed here is not saved yet.
    </Leave>
  );
}
