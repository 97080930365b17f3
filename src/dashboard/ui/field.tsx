import {
  type InputHTMLAttributes,
  type ReactElement,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  cloneElement,
  useId,
} from "react";
import type { FieldFault } from "../api/client.ts";
import { classes } from "./class-names.ts";
import { FaultOfField } from "./form-faults.tsx";

export interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  /** The server's words about this field. */
  fault?: FieldFault | undefined;
  /** One input, select or text area. */
  children: ReactElement<Record<string, unknown>>;
}

/** A label, its input, and what is wrong with it, tied together for screen readers. */
export function Field({ label, hint, fault, children }: FieldProps) {
  const id = useId();
  const described = [hint ? `${id}-hint` : "", fault ? `${id}-fault` : ""].filter(Boolean).join(" ");
  return (
    // Beside a field with a longer hint it does not stretch.
    <div className="grid content-start gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {cloneElement(children, {
        id,
        "aria-describedby": described || undefined,
        "aria-invalid": fault ? true : undefined,
      })}
      {hint && (
        <p id={`${id}-hint`} className="text-sm text-soft">
          {hint}
        </p>
      )}
      <FaultOfField id={`${id}-fault`} fault={fault} />
    </div>
  );
}

const INPUT =
  "w-full min-h-9 rounded-md border border-line bg-card px-3 py-1.5 text-[0.9375rem] " +
  "placeholder:text-soft aria-invalid:border-bad disabled:opacity-60";

export function Input(props: InputHTMLAttributes<HTMLInputElement>) {
  return <input {...props} className={classes(INPUT, "read-only:bg-back", props.className)} />;
}

export function TextArea(
  props: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> },
) {
  return <textarea {...props} className={classes(INPUT, "min-h-24", props.className)} />;
}

export function Select(props: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select {...props} className={classes(INPUT, "pr-8", props.className)} />;
}

type ToggleProps = {
  label: ReactNode;
  hint?: ReactNode;
  checked: boolean;
  onChange: (on: boolean) => void;
} & {
  disabled?: boolean;
};

/** Something that is on or off at once, without a button to save it. */
export function Toggle({ label, hint, checked, onChange, disabled }: ToggleProps) {
  const id = useId();
  return (
    <div className="flex items-start gap-3">
      <button
        id={id}
        type="button"
        role="switch"
        aria-checked={checked}
        aria-labelledby={`${id}-label`}
        disabled={disabled}
        onClick={() => onChange(!checked)}
        className={classes(
          "relative mt-0.5 h-5 w-9 shrink-0 rounded-full border transition-colors disabled:opacity-55",
          checked ? "border-accent bg-accent" : "border-soft bg-transparent",
        )}
      >
        <span
          className={classes(
            "absolute top-1/2 size-3.5 -translate-y-1/2 rounded-full transition-[left]",
            checked ? "left-[1.15rem] bg-accent-text" : "left-0.5 bg-soft",
          )}
        />
      </button>
      <span id={`${id}-label`} className="grid">
        <span className="font-medium">{label}</span>
        {hint && <span className="text-sm text-soft">{hint}</span>}
      </span>
    </div>
  );
}

/** A box to tick in a form that is sent as a whole. */
export function Checkbox({ label, ...rest }: InputHTMLAttributes<HTMLInputElement> & { label: ReactNode }) {
  return (
    <label className="flex min-h-7 items-center gap-2">
      <input type="checkbox" {...rest} className="size-4 accent-accent" />
      <span>{label}</span>
    </label>
  );
}
