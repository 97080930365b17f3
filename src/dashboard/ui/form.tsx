import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { FormFrame, RestOfFaults } from "./form-faults.tsx";

interface FormProps {
  /** What sending it does. */
  change: { mutate: (input: void) => void; isPending: boolean; error: unknown };
  /** What its button says, such as "Make the inbox". */
  act: string;
  look?: "main" | "danger";
  disabled?: boolean;
  /** In a window: how it is left with nothing done, and the word for that. */
  onCancel?: () => void;
  cancel?: string;
  /** What can be done about what the server says. */
  mend?: ReactNode;
  children: ReactNode;
}

/** Fields, what the server says against them, and the button that sends them. */
export function Form({
  change,
  act,
  look = "main",
  disabled,
  onCancel,
  cancel = "Cancel",
  mend,
  children,
}: FormProps) {
  return (
    <FormFrame error={change.error} onSubmit={() => change.mutate()} className="grid max-w-xl gap-4">
      {children}
      <RestOfFaults />
      {mend}
      <div className={`flex flex-wrap gap-2 ${onCancel ? "justify-end" : ""}`}>
        {onCancel && <Button onClick={onCancel}>{cancel}</Button>}
        <Button look={look} type="submit" busy={change.isPending} disabled={disabled}>
          {act}
        </Button>
      </div>
    </FormFrame>
  );
}
