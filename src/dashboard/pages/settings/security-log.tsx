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
  password_sign_in: "Signed in with the password",
  password_failed: "A wrong password was tried",
  password_set: "The password was set",
  api_key_created: "An API key was made",
  api_key_revoked: "An API key was revoked",
  account_exported: "Everything was downloaded",
};

/** What has been done to the account's access, so that its owner sees what was not them. */
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
          {events?.map(({ id, kind, client, api_key, created }) => (
            <li key={id} className="flex flex-wrap justify-between gap-x-4 py-1.5 text-sm">
              <span className={kind === "password_failed" ? "text-warn" : ""}>{WORDS[kind]}</span>
              <span className="text-soft wrap-anywhere">
                {api_key && `with the key ${api_key}, `}
                {client && `from ${client}, `}
                <Time at={created} />
              </span>
            </li>
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
