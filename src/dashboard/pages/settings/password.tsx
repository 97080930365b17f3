import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { rememberWay, session, useMe } from "../../api/session.ts";
import { Form } from "../../ui/form.tsx";
import { Card } from "../../ui/page.tsx";
import { PasswordField } from "../../ui/text-field.tsx";
import { useToast } from "../../ui/toast.tsx";
import { isStale, SignInAgain } from "./sign-in-again.tsx";
import { sessionList } from "./sessions.tsx";

export function Password() {
  const { has_password, email } = useMe();
  const say = useToast();
  const [password, setPassword] = useState("");
  const [current_password, setCurrent] = useState("");
  const save = useChange({
    run: () => post("/auth/set-password", { password, ...(current_password ? { current_password } : {}) }),
    touches: [session.queryKey, sessionList.queryKey],
    done: () => {
      setPassword("");
      setCurrent("");
      rememberWay("password");
      say("The password is set. Other browsers are signed out.");
    },
  });
  return (
    <Card title="Password">
      <Form change={save} act={has_password ? "Change the password" : "Set a password"}>
        <input type="hidden" autoComplete="username" value={email} readOnly />
        {has_password && (
          <PasswordField
            label="Password you have now"
            hint="Not needed if you signed in with a code."
            required={false}
            value={current_password}
            onChange={setCurrent}
          />
        )}
        <PasswordField
          isNew
          label={has_password ? "New password" : "Password"}
          hint={`At least 8 characters. You can ${has_password ? "change" : "set"} it for ten minutes after signing in. Signing in with a code by mail always works.`}
          fault={faultOf(save.error)("password")}
          value={password}
          onChange={setPassword}
        />
      </Form>
      {isStale(save.error) && <SignInAgain to="/app/settings" />}
    </Card>
  );
}
