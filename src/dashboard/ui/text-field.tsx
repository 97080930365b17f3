import type { InputHTMLAttributes } from "react";
import { Field, type FieldProps, Input } from "./field.tsx";

type TextFieldProps = Omit<FieldProps, "children"> &
  Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange"> & {
    value: string;
    onChange?: (text: string) => void;
  };

/** A line of text with its label. */
export function TextField({ label, hint, fault, onChange, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      <Input {...rest} onChange={(event) => onChange?.(event.target.value)} />
    </Field>
  );
}

export function EmailField(props: Omit<TextFieldProps, "label">) {
  return <TextField label="Your mail address" required type="email" autoComplete="username" {...props} />;
}

/** The password that somebody has, or with `isNew` one that is being chosen. */
export function PasswordField({
  isNew = false,
  label = "Password",
  ...rest
}: Omit<TextFieldProps, "label"> & { isNew?: boolean; label?: string }) {
  return (
    <TextField
      label={label}
      required
      type="password"
      minLength={isNew ? 8 : undefined}
      autoComplete={isNew ? "new-password" : "current-password"}
      {...rest}
    />
  );
}
