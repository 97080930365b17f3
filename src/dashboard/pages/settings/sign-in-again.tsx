import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { ApiError, post } from "../../api/client.ts";
import { session, useMe, useSignOut } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Form } from "../../ui/form.tsx";
import { PasswordField } from "../../ui/text-field.tsx";

/** Whether the server asks for somebody who has signed in a moment ago. */
export function isStale(error: unknown): boolean {
  return error instanceof ApiError && error.problem.code === "session_required";
}

interface SignInAgainProps {
  /** The page to come back to. */
  to: string;
  /**
   * Called once the person has signed in again. With it, whoever has a password signs in right here, and what was
   * typed stays.
   */
  onAgain?: () => void;
}

export function SignInAgain({ to, onAgain }: SignInAgainProps) {
  const { has_password } = useMe();
  const leave = useSignOut(`/app/sign-in?to=${encodeURIComponent(to)}`);
  if (has_password && onAgain) return <ByPassword onAgain={onAgain} />;
  return (
    <Button className="mt-4" busy={leave.isPending} onClick={() => leave.mutate()}>
      Sign out and in again
    </Button>
  );
}

function ByPassword({ onAgain }: { onAgain: () => void }) {
  const { email } = useMe();
  const [password, setPassword] = useState("");
  const enter = useChange({
    run: () => post("/auth/login", { email, password }),
    touches: [session.queryKey],
    done: onAgain,
  });
  return (
    <Form change={enter} act="Sign in and go on">
      <input type="hidden" autoComplete="username" value={email} readOnly />
      <PasswordField label="Your password" autoFocus value={password} onChange={setPassword} />
    </Form>
  );
}
