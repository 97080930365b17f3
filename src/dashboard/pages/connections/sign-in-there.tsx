import { LogIn } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import { ApiError, post } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";

interface SignInThereProps {
  /** The path of the API that returns the address of the consent page. */
  path: string;
  name: string;
  look?: "main" | "plain";
  /** What becomes of a token that is made there by hand. */
  token?: string | undefined;
}

const LASTING = "A token that you make there works as well.";

/** The button that leads to the consent page of a service, which leads back to the connections. */
export function SignInThere({ path, name, look = "plain", token = LASTING }: SignInThereProps) {
  const { is_admin } = useMe();
  const leave = useChange<void, { authorize_url: string }>({
    run: () => post<{ authorize_url: string }>(path),
    touches: [],
    done: ({ authorize_url }) => location.assign(authorize_url),
  });
  const { error } = leave;
  if (error instanceof ApiError && error.problem.code === "oauth_not_configured")
    return (
      <Notice look="warn">
        <p>
          This server is not set up for signing in at {name}. {token}
        </p>
        {is_admin && <p>{error.message}</p>}
      </Notice>
    );
  return (
    <div className="grid justify-items-start gap-2">
      <Button
        look={look}
        icon={<LogIn />}
        busy={leave.isPending || leave.isSuccess}
        onClick={() => leave.mutate()}
      >
        Sign in at {name}
      </Button>
      <Fault error={error} />
    </div>
  );
}
