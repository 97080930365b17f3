import type { ButtonHTMLAttributes, MouseEvent, ReactNode, Ref } from "react";
import { classes } from "./class-names.ts";
import { Spinner } from "./spinner.tsx";

const LOOKS = {
  main: "bg-accent text-accent-text hover:ring-3 hover:ring-accent-soft",
  plain: "border border-line bg-card hover:bg-hover",
  quiet: "hover:bg-hover text-soft hover:text-text",
  danger: "border border-bad/40 text-bad hover:bg-bad-soft",
};

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: keyof typeof LOOKS;
  /** Under way: it can't be pressed again, and says so. */
  busy?: boolean;
  icon?: ReactNode;
  ref?: Ref<HTMLButtonElement>;
};

export function Button({
  look = "plain",
  busy,
  disabled = false,
  icon,
  children,
  className,
  onClick,
  ...rest
}: ButtonProps) {
  const off = busy === true || disabled;
  // What takes time is done once, however fast it is pressed: before it shows as under way there is a moment.
  const press = (event: MouseEvent<HTMLButtonElement>): void => {
    const is_second = busy !== undefined && event.detail > 1;
    if (off || is_second) event.preventDefault();
    else onClick?.(event);
  };
  return (
    <button
      type="button"
      {...rest}
      aria-busy={busy || undefined}
      // Not `disabled`, which takes the focus away from who has just pressed it.
      aria-disabled={off || undefined}
      // Also keeps the form from being sent, by the Enter key too.
      onClick={press}
      className={classes(BUTTON, LOOKS[look], className)}
    >
      {busy ? <Spinner /> : icon}
      {children}
    </button>
  );
}

/** Also for links that look like buttons. */
export const BUTTON =
  "inline-flex min-h-9 items-center justify-center gap-2 rounded-md px-3 py-1.5 text-sm font-medium " +
  "whitespace-nowrap transition-colors aria-disabled:cursor-not-allowed aria-disabled:opacity-55 [&_svg]:size-4 [&_svg]:shrink-0";

/** A button that is only a picture; `label` is what a screen reader says and a mouse sees. */
export function IconButton({ label, children, ...rest }: ButtonProps & { label: string }) {
  return (
    <Button
      look="quiet"
      aria-label={label}
      title={label}
      {...rest}
      className={classes("px-2", rest.className)}
    >
      {children}
    </Button>
  );
}
