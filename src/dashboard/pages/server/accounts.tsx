import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { UserPlus } from "lucide-react";
import { useState } from "react";
import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import { paged } from "../../api/lists.ts";
import type { AdminUser, Page } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Select } from "../../ui/field.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { ACCOUNTS, Help, InviteDialog, PLANS } from "./account-help.tsx";
import { countOf } from "./words.ts";

export function Accounts() {
  const list = useInfiniteQuery(paged<AdminUser>(ACCOUNTS, "/admin/users"));
  const { data: users = [], error, isPending, refetch } = list;
  const [inviting, setInviting] = useState(false);
  return (
    <div className="grid gap-3">
      <div>
        <Button look="main" icon={<UserPlus />} onClick={() => setInviting(true)}>
          Make an account
        </Button>
      </div>
      {inviting && <InviteDialog onClose={() => setInviting(false)} />}
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
  const { id, email, plan, usage, credits, created } = user;
  const say = useToast();
  const queries = useQueryClient();
  const [wanted, setWanted] = useState<AdminUser["plan"]>();
  const move = useChange<AdminUser["plan"], AdminUser>({
    run: (to) => patch<AdminUser>(`/admin/users/${id}`, { plan: to }),
    touches: [ACCOUNTS, ["me"]],
    done: (made, to) => {
      setWanted(undefined);
      say(`${email} has the plan ${PLANS[to]} now.`, () => moveBack(made));
    },
  });
  const moveBack = async (made: AdminUser): Promise<void> => {
    await queries.refetchQueries({ queryKey: ACCOUNTS });
    const pages = queries.getQueryData<InfiniteData<Page<AdminUser>>>(ACCOUNTS)?.pages ?? [];
    const now = pages.flatMap(({ items }) => items).find((one) => one.id === id);
    if (now) refuseChanged(now, made, ["plan"]);
    await move.mutateAsync(plan);
  };
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
      <span className="grid min-w-0 flex-1 basis-60">
        <span className="truncate font-medium" title={email}>
          {email}
        </span>
        <span className="text-sm text-soft">
          {countOf(usage.messages_30_days, "message")} in 30 days,{" "}
          {countOf(usage.inboxes, "inbox", "inboxes")}
          {!credits.unlimited && `, ${countOf(credits.remaining, "credit")} left`}, made <Time at={created} />
        </span>
      </span>
      {user.is_admin && <Badge look="accent">Administrator</Badge>}
      {!user.email_verified && <Badge look="warn">Not verified</Badge>}
      <Select
        aria-label={`Plan of ${email}`}
        className="w-auto!"
        disabled={move.isPending}
        value={plan}
        onChange={(event) => setWanted(event.target.value as AdminUser["plan"])}
      >
        {Object.entries(PLANS).map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </Select>
      <Help user={user} />
      {wanted && (
        <Confirm
          title={`Move ${email} to ${PLANS[wanted]}?`}
          act={`Move to ${PLANS[wanted]}`}
          busy={move.isPending}
          error={move.error}
          onConfirm={() => move.mutate(wanted)}
          onClose={() => setWanted(undefined)}
        >
          <p>
            The limits and credits of {PLANS[wanted]} hold from now on, in place of those of {PLANS[plan]}.
            Nothing is charged and nothing is deleted: what a smaller plan has no room for rests until there
            is room again.
          </p>
        </Confirm>
      )}
    </li>
  );
}
