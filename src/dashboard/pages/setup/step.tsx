import { CircleCheck } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { moveFocus } from "../../shell/focus.ts";
import { Button } from "../../ui/button.tsx";
import { classes } from "../../ui/class-names.ts";

export interface StepState {
  number: number;
  done: boolean;
  /** Whether it is the step to be done now, or one that somebody wants to see again. */
  open: boolean;
  /** Whether the person's own doing opened it, so that the focus moves there. */
  moved: boolean;
  onOpen: () => void;
}

interface StepProps {
  title: string;
  state: StepState;
  /** The outcome, once it is done. */
  summary?: ReactNode;
  /** The words on the button that opens it again. */
  again?: string;
  children: ReactNode;
}

/** One of several steps, of which the next one is open. */
export function Step({ title, state, summary, again, children }: StepProps) {
  const { number, done, open, moved, onOpen } = state;
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (open && moved) moveFocus(heading.current);
  }, [open, moved]);
  return (
    <section
      className={classes("rounded-xl border border-line p-4", open && "bg-card")}
      aria-labelledby={id}
      aria-current={open ? "step" : undefined}
    >
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2
          ref={heading}
          id={id}
          tabIndex={-1}
          className={classes(
            "flex items-center gap-2 text-lg font-semibold",
            !open && !done && "font-medium text-soft",
          )}
        >
          {done ? (
            <CircleCheck aria-label="Done:" className="size-6 shrink-0 text-good" />
          ) : (
            <span
              aria-hidden
              className={classes(
                "grid size-6 shrink-0 place-items-center rounded-full text-sm",
                open ? "bg-accent text-accent-text" : "bg-hover text-soft",
              )}
            >
              {number}
            </span>
          )}
          {title}
        </h2>
        {!open && again && (
          <Button look="quiet" onClick={onOpen}>
            {again}
          </Button>
        )}
      </div>
      {open ? (
        <div className="mt-3 grid gap-3 sm:pl-8">{children}</div>
      ) : (
        summary && <div className="mt-1 min-w-0 text-soft sm:pl-8">{summary}</div>
      )}
    </section>
  );
}
