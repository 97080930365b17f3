import type { ErrorComponentProps } from "@tanstack/react-router";
import { useGoOn } from "../api/reach.ts";
import { Fault } from "../ui/notice.tsx";

export function PageFault({ error, reset }: ErrorComponentProps) {
  return (
    <div className="mx-auto max-w-2xl p-6">
      <Fault error={error} retry={reset} />
    </div>
  );
}

/** Says why a page could not be fetched, and fetches it again once the server answers: the router would not. */
export function UnfetchedPage({ error }: ErrorComponentProps) {
  useGoOn(loadAgain);
  return <PageFault error={error} reset={loadAgain} />;
}

const loadAgain = (): void => location.reload();
