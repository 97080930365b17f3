import { queryOptions, useQuery } from "@tanstack/react-query";
import { useChange } from "../../api/changes.ts";
import { get, remove } from "../../api/client.ts";
import type { Session } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { browserName } from "./browsers.ts";

export const sessionList = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => get<Session[]>("/auth/sessions", signal),
});

export function Sessions() {
  const { data: sessions, error, isPending, refetch } = useQuery(sessionList);
  return (
    <Card title="Browsers that are signed in">
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your browsers" />}
      <ul className="divide-y divide-line">
        {sessions?.map((one) => (
          <Row key={one.id} session={one} />
        ))}
      </ul>
    </Card>
  );
}

function Row({ session: { id, user_agent, client, created, expires, current } }: { session: Session }) {
  const say = useToast();
  const end = useChange({
    run: () => remove(`/auth/sessions/${id}`),
    touches: [sessionList.queryKey],
    done: () => say(`${browserName(user_agent)} is signed out.`),
  });
  return (
    <li className="grid gap-2 py-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <span className="grid min-w-0 flex-1 basis-48">
          <span className="truncate font-medium" title={user_agent}>
            {browserName(user_agent)}
          </span>
          <span className="text-sm text-soft">
            {client && `From ${client}, `}signed in <Time at={created} />; this ends <Time at={expires} />.
          </span>
        </span>
        {current ? (
          <Badge look="good">This one</Badge>
        ) : (
          <Button
            aria-label={`Sign it out: ${browserName(user_agent)}`}
            busy={end.isPending}
            onClick={() => end.mutate()}
          >
            Sign it out
          </Button>
        )}
      </div>
      <Fault error={end.error} />
    </li>
  );
}
