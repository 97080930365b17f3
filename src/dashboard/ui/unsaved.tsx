import { useBlocker } from "@tanstack/react-router";
import { Confirm } from "./dialog.tsx";

/** Asks before a page with changes that are not saved is left. */
export function Unsaved({ changed }: { changed: boolean }) {
  const leaving = useBlocker({
    shouldBlockFn: () => changed,
    enableBeforeUnload: changed,
    withResolver: true,
  });
  if (leaving.status !== "blocked") return null;
  return (
    <Confirm
      title="Leave without saving?"
      act="Throw the changes away"
      cancel="Stay here"
      busy={false}
      error={undefined}
      onConfirm={leaving.proceed}
      onClose={leaving.reset}
    >
      <p>What you have changed here is not saved yet.</p>
    </Confirm>
  );
}
