import { queryOptions, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { get } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { figure } from "../../ui/figure.ts";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { Buy } from "./buy.tsx";
import { Landing } from "./landing.tsx";
import { PLANS } from "./plans.ts";

const server = queryOptions({
  queryKey: ["server"],
  queryFn: ({ signal }) => get<{ payments: boolean }>("/server", signal),
  staleTime: Number.POSITIVE_INFINITY,
});

/** The page about the plan. All paying is done on pages of the payment provider, to which this one links. */
export function Billing() {
  const { checkout } = useSearch({ strict: false });
  const { data, error, refetch } = useQuery(server);
  return (
    <Page title="Billing" intro="Your plan, and what belongs to it.">
      {checkout && <Landing key={checkout} checkout={checkout} />}
      <CurrentPlan />
      <Fault error={error} retry={() => void refetch()} />
      {!data && !error && <Loading what="what can be bought" />}
      {data && (data.payments ? <Buy /> : <NothingSold />)}
    </Page>
  );
}

function CurrentPlan() {
  const { plan, credits, limits } = useMe();
  if (credits.unlimited) return null;
  return (
    <Card title="Your plan">
      <div className="grid gap-2">
        <p className="flex flex-wrap items-center gap-2">
          <Badge look="accent">{PLANS[plan]}</Badge>
          {figure(credits.allowance)} credits a month, {limits.inboxes} inboxes, {limits.contexts} contexts,{" "}
          {limits.connections} connections.
        </p>
        <p className="text-sm text-soft">
          {figure(credits.remaining)} credits are left
          {credits.topup > 0 && `, ${figure(credits.topup)} of them bought`}. New ones come{" "}
          <Time at={credits.resets_at} />.
        </p>
      </div>
    </Card>
  );
}

function NothingSold() {
  const { is_admin } = useMe();
  return (
    <Notice>
      <p>This server sells nothing, so there is nothing to pay here.</p>
      <p>
        {is_admin ? (
          <>
            You run it: <code className="font-mono">mailwright user set-plan</code> gives somebody another
            plan. To take payments, set the keys of Stripe in the configuration, under [billing].
          </>
        ) : (
          "Whoever runs it gives out the plans."
        )}
      </p>
    </Notice>
  );
}
