import { useInfiniteQuery } from "@tanstack/react-query";
import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import { paged } from "../../api/lists.ts";
import type { AdminUser } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Select } from "../../ui/field.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { useToast } from "../../ui/toast.tsx";

const KEY = ["admin", "users"];

export function Accounts() {
  const list = useInfiniteQuery(paged<AdminUser>(KEY, "/admin/users"));
  const { data: users = [], error, isPending, refetch } = list;
  return (
    <div className="grid gap-3">
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="the accounts" />}
      {users.length > 0 && (
        <ul className="divide-y divide-line rounded-xl border border-line bg-card">
          {users.map((user) => (
            <Row key={user.id} user={user} />
          ))}
        </ul>
      )}
      <More of={list} />
    </div>
  );
}

function Row({ user }: { user: AdminUser }) {
  const say = useToast();
  const change = useChange<string>({
    run: (plan) => patch(`/admin/users/${user.id}`, { plan }),
    touches: [KEY, ["me"]],
    done: () => say(`The plan of ${user.email} is changed.`),
  });
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
      <span className="grid min-w-0 flex-1">
        <span className="truncate font-medium">{user.email}</span>
        <span className="text-sm text-soft">
          {user.usage.messages_30_days} messages in 30 days, {user.usage.inboxes} inboxes,{" "}
          {user.credits.remaining} credits left
        </span>
      </span>
      {user.is_admin && <Badge look="accent">Administrator</Badge>}
      {!user.email_verified && <Badge look="warn">Not verified</Badge>}
      <Select
        aria-label={`Plan of ${user.email}`}
        className="w-auto!"
        disabled={change.isPending}
        value={user.plan}
        onChange={(event) => change.mutate(event.target.value)}
      >
        <option value="free">Free</option>
        <option value="pro">Pro</option>
        <option value="team">Team</option>
      </Select>
      <Fault error={change.error} />
    </li>
  );
}
