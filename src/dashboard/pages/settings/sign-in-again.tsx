import { ApiError } from "../../api/client.ts";
import { useSignOut } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";

/** Whether the server asks for somebody who has signed in a moment ago. */
export function isStale(error: unknown): boolean {
  return error instanceof ApiError && error.problem.code === "session_required";
}

/** `to`: where one comes back to. */
export function SignInAgain({ to }: { to: string }) {
  const leave = useSignOut(`/app/sign-in?to=${encodeURIComponent(to)}`);
  return (
    <Button className="mt-4" busy={leave.isPending} onClick={() => leave.mutate()}>
      Sign out and in again
    </Button>
  );
}
