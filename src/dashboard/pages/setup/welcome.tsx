import { useIsMutating, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useMe } from "../../api/session.ts";
import { Fault } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { serviceDns } from "../domains/service-dns.tsx";
import { DnsStep } from "./dns-step.tsx";
import { type FirstSteps, isProven, useFirstSteps } from "./first-steps.ts";
import { InboxStep } from "./inbox-step.tsx";
import { MailStep } from "./mail-step.tsx";
import { MODEL_CHANGE, ModelStep } from "./model-step.tsx";
import { Step, type StepState } from "./step.tsx";

/** The key in the browser's storage that says that somebody went past the DNS: the server does not know it. */
const PAST_DNS = "past-dns";

type StepName = "account" | "dns" | "model" | "inbox" | "mail";

/** The page that leads from an empty account to the first answer. */
export function Welcome() {
  const { steps, error } = useFirstSteps();
  if (steps) return <Steps steps={steps} />;
  return error ? <Fault error={error} /> : <Loading what="what is there already" />;
}

function Steps({ steps: { models, inbox, answered, ...steps } }: { steps: FirstSteps }) {
  const me = useMe();
  const { data: dns } = useQuery({ ...serviceDns, enabled: me.is_admin });
  const [chosen, setChosen] = useState<StepName>();
  const [moved, setMoved] = useState(false);
  const [isPastDns, setPastDns] = useState(() => localStorage.getItem(PAST_DNS) === me.id);
  const isModelUnderWay = useIsMutating({ mutationKey: MODEL_CHANGE }) > 0;
  const working = models.find(isProven);
  const done: Record<StepName, boolean> = {
    account: true,
    dns: dns?.ready ?? false,
    ...steps.done,
  };
  const names: StepName[] = me.is_admin
    ? ["account", "dns", "model", "inbox", "mail"]
    : ["account", "model", "inbox", "mail"];
  const waits = (name: StepName): boolean => {
    // The step about the DNS ends only when the person goes past it: it may wait, and what it says may change while
    // it is read.
    if (name === "dns") return !isPastDns && models.length === 0;
    // The next steps wait for the model, without which they would make things that do not work.
    return !done[name] || (name === "model" && isModelUnderWay);
  };
  const open = chosen ?? names.find(waits) ?? "mail";
  const goOn = (): void => {
    setMoved(true);
    setChosen(undefined);
  };
  const goPastDns = (): void => {
    localStorage.setItem(PAST_DNS, me.id);
    setPastDns(true);
    goOn();
  };
  const stateOf = (name: StepName): StepState => ({
    number: names.indexOf(name) + 1,
    done: done[name],
    open: open === name,
    moved,
    onOpen: () => {
      setMoved(true);
      setChosen(name);
    },
  });
  return (
    <Page title="Get started" intro="A few steps to your first answer. You can leave and come back.">
      <div className="grid gap-3">
        <Step title="Your account" state={stateOf("account")} summary={me.email}>
          {null}
        </Step>
        {me.is_admin && <DnsStep state={stateOf("dns")} onDone={goPastDns} />}
        <ModelStep state={stateOf("model")} models={models} onDone={goOn} />
        <InboxStep state={stateOf("inbox")} inbox={inbox} model={working} onDone={goOn} />
        <MailStep state={stateOf("mail")} inbox={inbox} model={working} answered={answered} />
      </div>
    </Page>
  );
}
