import { LoaderCircle } from "lucide-react";

export function Spinner() {
  return <LoaderCircle aria-hidden className="size-4 animate-spin" />;
}

/** The state of a list or a page whose content is under way; it appears late enough not to flicker. */
export function Loading({ what }: { what: string }) {
  return (
    <p
      role="status"
      className="flex animate-[appear_150ms_300ms_both] items-center gap-2 p-6 text-sm text-soft"
    >
      <Spinner /> Loading {what}…
    </p>
  );
}
