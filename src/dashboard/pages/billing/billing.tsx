import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { ApiError, post } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";

const PLANS = { free: "Free", pro: "Pro", team: "Team" } as const;
type Paid = "pro" | "team";

/** Everything that is paid for happens on the pages of the payment provider; this one leads there. */
export function Billing() {
  const me = useMe();
  const [interval, setInterval] = useState<"month" | "year">("month");
  const leave = (path: string, body?: object) => ({
    run: () => post<{ url: string }>(path, body),
    touches: [],
    done: ({ url }: { url: string }) => location.assign(url),
  });
  const pro = useChange<void, { url: string }>(leave("/billing/checkout", { plan: "pro", interval }));
  const team = useChange<void, { url: string }>(leave("/billing/checkout", { plan: "team", interval }));
  const topUp = useChange<void, { url: string }>(leave("/billing/topup"));
  const portal = useChange<void, { url: string }>(leave("/billing/portal"));
  const choices = { pro, team };
  const error = pro.error ?? team.error ?? topUp.error ?? portal.error;
  const wanted = (["pro", "team"] as Paid[]).filter((plan) => plan !== me.plan);
  return (
    <Page title="Billing" intro="Your plan, and what you can buy.">
      {isFree(error) ? (
        <Notice>This server sells nothing. Who runs it gives plans by hand.</Notice>
      ) : (
        <Fault error={error} />
      )}
      <Card title="Your plan">
        <p className="flex flex-wrap items-center gap-2">
          <Badge look="accent">{PLANS[me.plan]}</Badge>
          {me.credits.allowance} credits a month, {me.limits.inboxes} inboxes, {me.limits.contexts} contexts,{" "}
          {me.limits.connections} connections.
        </p>
      </Card>
      <Card title="Another plan">
        <div className="flex flex-wrap items-center gap-2">
          <Select
            aria-label="Paid"
            className="w-auto!"
            value={interval}
            onChange={(event) => setInterval(event.target.value === "year" ? "year" : "month")}
          >
            <option value="month">By month</option>
            <option value="year">By year</option>
          </Select>
          {wanted.map((plan) => (
            <Button
              key={plan}
              look="main"
              busy={choices[plan].isPending}
              onClick={() => choices[plan].mutate()}
            >
              Change to {PLANS[plan]}
            </Button>
          ))}
        </div>
      </Card>
      <Card title="More">
        <div className="flex flex-wrap gap-2">
          {me.plan !== "free" && (
            <Button busy={topUp.isPending} onClick={() => topUp.mutate()}>
              Buy more credits
            </Button>
          )}
          <Button busy={portal.isPending} onClick={() => portal.mutate()}>
            Invoices, card and cancelling
          </Button>
        </div>
      </Card>
    </Page>
  );
}

function isFree(error: unknown): boolean {
  return error instanceof ApiError && error.problem.code === "billing_not_configured";
}
