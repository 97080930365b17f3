import type { ErrorComponentProps } from "@tanstack/react-router";
import { Fault } from "../ui/notice.tsx";

export function PageFault({ error, reset }: ErrorComponentProps) {
  return (
    <div className="mx-auto max-w-2xl p-6">
      <Fault error={error} retry={reset} />
    </div>
  );
}
