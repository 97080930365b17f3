import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { rememberBefore } from "./before.ts";
import { PLANS } from "./plans.ts";

type Paid = "pro" | "team";
interface HostedPage {
  url: string;
}

/** The buttons that lead to the pages of the payment provider. */
export function Buy() {
  const me = useMe();
  const [interval, setInterval] = useState<"month" | "year">("month");
  const leave = ({ url }: HostedPage): void => {
    rememberBefore(me);
    location.assign(url);
  };
  const checkout = useChange<Paid, HostedPage>({
    run: (plan) => post<HostedPage>("/billing/checkout", { plan, interval }),
    touches: [],
    done: leave,
  });
  return (
    <>
      <Card title="Another plan">
        <div className="grid gap-3">
          <p className="text-sm text-soft">You see the price on the next page, before you pay.</p>
          <div className="flex flex-wrap items-center gap-2">
            <Select
              aria-label="Paid"
              className="w-auto!"
              value={interval}
              onChange={(event) => setInterval(event.target.value === "year" ? "year" : "month")}
            >
              <option value="month">Paid by the month</option>
              <option value="year">Paid by the year</option>
            </Select>
            {(["pro", "team"] as const)
              .filter((plan) => plan !== me.plan)
              .map((plan) => (
                <Button
                  key={plan}
                  look="main"
                  busy={checkout.isPending && checkout.variables === plan}
                  onClick={() => checkout.mutate(plan)}
                >
                  Change to {PLANS[plan]}
                </Button>
              ))}
          </div>
          <Fault error={checkout.error} />
        </div>
      </Card>
      <More onLeave={leave} />
    </>
  );
}

function More({ onLeave }: { onLeave: (page: HostedPage) => void }) {
  const { plan } = useMe();
  const open = (path: string) => ({ run: () => post<HostedPage>(path), touches: [], done: onLeave });
  const topUp = useChange<void, HostedPage>(open("/billing/topup"));
  const portal = useChange<void, HostedPage>(open("/billing/portal"));
  return (
    <Card title="Credits and invoices">
      <div className="grid gap-3">
        <p className="text-sm text-soft">
          {plan === "free"
            ? "On a paid plan you can buy more credits."
            : "Credits that you buy are used once those of the month are, and they never expire."}
        </p>
        <div className="flex flex-wrap gap-2">
          {plan !== "free" && (
            <Button busy={topUp.isPending} onClick={() => topUp.mutate()}>
              Buy more credits
            </Button>
          )}
          <Button busy={portal.isPending} onClick={() => portal.mutate()}>
            Invoices, card and cancelling
          </Button>
        </div>
        <Fault error={topUp.error ?? portal.error} />
      </div>
    </Card>
  );
}
