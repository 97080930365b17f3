import { Scroll } from "./scroll.tsx";

/** A text as it is, of any length: it scrolls in its place. */
export function LongText({ label, text, className }: { label: string; text: string; className: string }) {
  return (
    <Scroll
      label={label}
      role="region"
      className={`rounded-md bg-back whitespace-pre-wrap wrap-anywhere ${className}`}
    >
      {text}
    </Scroll>
  );
}
