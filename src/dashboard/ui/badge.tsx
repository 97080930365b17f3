import type { ReactNode } from "react";
import { classes } from "./class-names.ts";

const LOOKS = {
  plain: "bg-hover text-soft",
  accent: "bg-accent-soft text-accent",
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};
export type BadgeLook = keyof typeof LOOKS;

/** A word about a state. The word says it all; the colour only helps to find it. */
export function Badge({ look = "plain", children }: { look?: BadgeLook; children: ReactNode }) {
  return (
    <span
      className={classes(
        "inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap",
        LOOKS[look],
      )}
    >
      {children}
    </span>
  );
}
