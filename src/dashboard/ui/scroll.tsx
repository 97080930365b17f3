import type { ReactNode } from "react";
import { classes } from "./class-names.ts";

interface ScrollProps {
  /** What it is, for who comes to it by keyboard. */
  label: string;
  className?: string;
  children: ReactNode;
}

/** What may be larger than its place: once it has the focus, the arrow keys scroll it. */
export function Scroll({ label, className, children }: ScrollProps) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div role="group" aria-label={label} tabIndex={0} className={classes("overflow-auto", className)}>
      {children}
    </div>
  );
}
