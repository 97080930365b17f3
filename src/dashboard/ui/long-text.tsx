import { classes } from "./class-names.ts";

/** A text as it is, of any length: it scrolls in its place, with the keys too. */
export function LongText({ label, text, className }: { label: string; text: string; className: string }) {
  return (
    <pre
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls has to be reached by the keyboard
      tabIndex={0}
      role="region"
      aria-label={label}
      className={classes("overflow-auto rounded-md bg-back whitespace-pre-wrap wrap-anywhere", className)}
    >
      {text}
    </pre>
  );
}
