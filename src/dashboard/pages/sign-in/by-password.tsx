import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { faultOf, post } from "../../api/client.ts";
import type { Me } from "../../api/shapes.ts";
import { Form } from "../../ui/form.tsx";
import { EmailField, PasswordField } from "../../ui/text-field.tsx";
import { useWelcome, type WayProps } from "./welcome.ts";

export function ByPassword({ opened, email, onEmail }: WayProps) {
  const [password, setPassword] = useState("");
  const login = useMutation({
    mutationFn: () => post<Me>("/auth/login", { email, password }),
    onSuccess: useWelcome("password"),
  });
  return (
    <Form change={login} act="Sign in">
      <EmailField
        autoFocus={opened}
        placeholder="you@example.org"
        fault={faultOf(login.error)("email")}
        value={email}
        onChange={onEmail}
      />
      <PasswordField
        hint="None chosen yet, or forgotten? Sign in with a code instead."
        value={password}
        onChange={setPassword}
      />
    </Form>
  );
}
