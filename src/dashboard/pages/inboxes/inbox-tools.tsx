import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { connectionList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Checkbox } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

/** Which tools an inbox may use, and which of them may act without being named. */
export function InboxTools({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const { data: connections = [] } = useQuery(connectionList);
  const servers = connections.filter(({ category }) => category === "mcp");
  const services = connections.filter(({ category }) => category === "integration");
  const { scope, mcp_connection_ids: attached } = inbox;
  const attach = (id: string, on: boolean): void =>
    change.mutate({ mcp_connection_ids: on ? [...attached, id] : attached.filter((other) => other !== id) });
  const restrict = (targets: string[] | null): void =>
    change.mutate({
      scope: targets && {
        targets,
        autonomous: (scope?.autonomous ?? []).filter((target) => targets.includes(target)),
      },
    });
  const kinds = [...new Set(services.map(({ kind }) => kind))];
  return (
    <div className="grid gap-4">
      <Card title="Tool servers">
        <div className="grid gap-2">
          {servers.length === 0 && <Missing what="tool server" />}
          {servers.map(({ id, label, base_url }) => (
            <Checkbox
              key={id}
              label={
                <>
                  {label} <span className="text-sm text-soft">{base_url}</span>
                </>
              }
              checked={attached.includes(id)}
              onChange={(event) => attach(id, event.target.checked)}
            />
          ))}
        </div>
      </Card>
      <Card title="Services">
        <div className="grid gap-2">
          {services.length === 0 && <Missing what="service" />}
          {kinds.map((kind) => (
            <Checkbox
              key={kind}
              label={services.find((service) => service.kind === kind)?.label ?? kind}
              checked={scope === null || scope.targets.includes(kind)}
              onChange={(event) => {
                const now = scope?.targets ?? [...kinds, ...attachedNames(attached, connections)];
                restrict(event.target.checked ? [...now, kind] : now.filter((target) => target !== kind));
              }}
            />
          ))}
        </div>
      </Card>
      <Notice>
        When a mail contains anything that others wrote, a tool that changes something is only used if your
        own instruction names it, such as “@notes file this”. Sentences inside of mails and files never can.
      </Notice>
      {scope && scope.autonomous.length > 0 && (
        <Notice look="warn">
          These act without being named, also on text that others wrote: {scope.autonomous.join(", ")}.
        </Notice>
      )}
      <Fault error={change.error} />
    </div>
  );
}

function attachedNames(ids: string[], connections: { id: string; label: string }[]): string[] {
  return connections.filter(({ id }) => ids.includes(id)).map(({ label }) => `mcp:${label.toLowerCase()}`);
}

function Missing({ what }: { what: string }) {
  return (
    <p className="text-soft">
      No {what} is connected yet.{" "}
      <Link to="/connections" className="text-accent underline">
        Connect one
      </Link>
    </p>
  );
}
