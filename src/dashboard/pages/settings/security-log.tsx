import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import type { SecurityEvent } from "../../api/shapes.ts";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";

/** What has been done to the account's access, so that its owner sees what was not them. */
export function SecurityLog() {
  const { data: events, error } = useQuery({
    queryKey: ["security-events"],
    queryFn: ({ signal }) => get<SecurityEvent[]>("/auth/security-events", signal),
  });
  return (
    <Card title="What happened to your access">
      <Fault error={error} />
      <ul className="max-h-72 divide-y divide-line overflow-y-auto">
        {events?.map(({ id, kind, client, created }) => (
          <li key={id} className="flex flex-wrap justify-between gap-x-4 py-1.5 text-sm">
            <span>{kind.replaceAll("_", " ")}</span>
            <span className="text-soft">
              {client && `${client} · `}
              <Time at={created} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
