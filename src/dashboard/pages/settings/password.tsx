import { type FormEvent, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { ApiError, post } from "../../api/client.ts";
import { session, useMe } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useToast } from "../../ui/toast.tsx";

export function Password() {
  const { has_password, email } = useMe();
  const say = useToast();
  const [password, setPassword] = useState("");
  const [current_password, setCurrent] = useState("");
  const save = useChange({
    run: () => post("/auth/set-password", { password, ...(current_password ? { current_password } : {}) }),
    touches: [session.queryKey],
    done: () => {
      setPassword("");
      setCurrent("");
      say("The password is set. Other browsers are signed out.");
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Card title="Password">
      <form onSubmit={submit} className="grid max-w-xl gap-4">
        <input type="hidden" autoComplete="username" value={email} readOnly />
        {has_password && (
          <Field
            label="Password you have now"
            hint="Not needed in the ten minutes after signing in with a code."
          >
            <Input
              type="password"
              autoComplete="current-password"
              value={current_password}
              onChange={(event) => setCurrent(event.target.value)}
            />
          </Field>
        )}
        <Field
          label={has_password ? "New password" : "Password"}
          hint="At least 8 characters. A code by mail works with or without one."
          fault={save.error instanceof ApiError ? save.error.fieldFault("password") : undefined}
        >
          <Input
            required
            type="password"
            minLength={8}
            autoComplete="new-password"
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </Field>
        <Fault error={save.error} />
        <div>
          <Button look="main" type="submit" busy={save.isPending}>
            {has_password ? "Change the password" : "Set a password"}
          </Button>
        </div>
      </form>
    </Card>
  );
}
