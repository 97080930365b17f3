import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import type { SecurityEvent } from "../../api/shapes.ts";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";

const WORDS: Record<SecurityEvent["kind"], string> = {
  set_up: "The account was made by the link of the first start",
  code_sign_in: "Signed in with a code",
  code_shown: "A tool showed a sign-in code, which does not count any more",
  password_sign_in: "Signed in with the password",
  password_failed: "A wrong password was tried",
  password_set: "The password was set",
  password_reset: "An administrator took the password away",
  api_key_created: "An API key was made",
  api_key_revoked: "An API key was revoked",
  account_exported: "Everything was downloaded",
  session_ended: "A browser was signed out",
  profile_changed: "The profile was changed",
  connection_begun: "A connection was begun at its provider",
  connection_created: "A connection was made",
  connection_changed: "A connection was changed",
  connection_deleted: "A connection was deleted",
  inbox_created: "An inbox was made",
  inbox_changed: "An inbox was changed",
  inbox_rotated: "An inbox got a new address",
  inbox_deleted: "An inbox was deleted",
  messages_deleted: "Messages were deleted",
  schedule_created: "A schedule was made",
  schedule_changed: "A schedule was changed",
  schedule_deleted: "A schedule was deleted",
  context_created: "A context was made",
  context_changed: "A context was changed",
  context_deleted: "A context was deleted",
  recipe_applied: "A recipe was applied",
  domain_created: "A domain was added",
  domain_deleted: "A domain was removed",
  webhook_created: "A webhook was made",
  webhook_changed: "A webhook was changed",
  webhook_deleted: "A webhook was deleted",
  webhook_secret_shown: "The secret of a webhook was shown",
  webhook_secret_rotated: "A webhook got a new secret",
  billing_opened: "A page for paying was opened",
  administered: "Something was done to the server, as its administrator",
};

function Happening({ event }: { event: SecurityEvent }) {
  const { kind, client, api_key, created, times, left_out } = event;
  return (
    <li className="flex flex-wrap justify-between gap-x-4 py-1.5 text-sm">
      <span className={kind === "password_failed" ? "text-warn" : ""}>
        {WORDS[kind]}
        {times > 1 && `, ${times} times within an hour`}
      </span>
      <span className="text-soft wrap-anywhere">
        {api_key && `with the key "${api_key}", `}
        {client && `from ${client}, `}
        <Time at={created} />
        {left_out > 0 && `, and ${left_out} more after it that are not listed`}
      </span>
    </li>
  );
}

/** The security events of the account, so that its owner sees what was not their doing. */
export function SecurityLog() {
  const {
    data: events,
    error,
    isPending,
    refetch,
  } = useQuery({
    queryKey: ["security-events"],
    queryFn: ({ signal }) => get<SecurityEvent[]>("/auth/security-events", signal),
  });
  return (
    <Card title="What happened to your access">
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="what happened" />}
      {events?.length === 0 && <p className="text-soft">Nothing yet.</p>}
      <Scroll label="What happened to your access" className="max-h-72">
        <ul className="divide-y divide-line">
          {events?.map((event) => (
            <Happening key={event.id} event={event} />
          ))}
        </ul>
      </Scroll>
      <p className="pt-2 text-sm text-soft">
        If something here was not you: set a new password, which signs all other browsers out, and make new
        keys.
      </p>
    </Card>
  );
}
