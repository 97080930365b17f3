import type { ReactNode } from "react";
import { classes } from "./class-names.ts";

interface ScrollProps {
  /** What it is, for who comes to it by keyboard. */
  label: string;
  role?: "group" | "region";
  className?: string;
  children: ReactNode;
}

/** What may be larger than its place: once it has the focus, the arrow keys scroll it. */
export function Scroll({ label, role = "group", className, children }: ScrollProps) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls has to be reached by the keyboard
    <div role={role} aria-label={label} tabIndex={0} className={classes("overflow-auto", className)}>
      {children}
    </div>
  );
}
