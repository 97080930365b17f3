import { queryOptions, useQuery } from "@tanstack/react-query";
import { useChange } from "../../api/changes.ts";
import { get, remove } from "../../api/client.ts";
import type { Session } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";

const sessionList = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => get<Session[]>("/auth/sessions", signal),
});

export function Sessions() {
  const { data: sessions, error } = useQuery(sessionList);
  const end = useChange<string>({
    run: (id) => remove(`/auth/sessions/${id}`),
    touches: [sessionList.queryKey],
  });
  return (
    <Card title="Browsers that are signed in">
      <Fault error={error ?? end.error} />
      <ul className="divide-y divide-line">
        {sessions?.map(({ id, user_agent, client, created, current }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
            <span className="grid min-w-0 flex-1">
              <span className="truncate" title={user_agent}>
                {user_agent || "Unknown browser"}
              </span>
              <span className="text-sm text-soft">
                {client} · since <Time at={created} />
              </span>
            </span>
            {current ? (
              <Badge look="good">This one</Badge>
            ) : (
              <Button busy={end.isPending && end.variables === id} onClick={() => end.mutate(id)}>
                Sign it out
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}
