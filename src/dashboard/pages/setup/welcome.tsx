import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Activity, Connection, Inbox, Page as Paged } from "../../api/shapes.ts";
import { Fault } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { serviceDns } from "../domains/service-dns.tsx";
import { DnsStep } from "./dns-step.tsx";
import { InboxStep } from "./inbox-step.tsx";
import { MailStep } from "./mail-step.tsx";
import { isUnproven, ModelStep } from "./model-step.tsx";
import { Step, type StepState } from "./step.tsx";

/** The newest test that was answered. */
const answeredTest = queryOptions({
  queryKey: ["answered-test"],
  queryFn: async ({ signal }) =>
    (await get<Paged<Activity>>("/messages?source=test&status=done&limit=1", signal)).items,
});

type StepName = "account" | "dns" | "model" | "inbox" | "mail";

/** From an empty account to the first answer. What is done already is told by the server, so that it stays done. */
export function Welcome() {
  const { data: connections, error: fault } = useQuery(connectionList);
  const { data: inboxes, error } = useQuery(inboxList);
  const { data: tests } = useQuery(answeredTest);
  if (fault ?? error) return <Fault error={fault ?? error} />;
  if (!connections || !inboxes || !tests) return <Loading what="what is there already" />;
  const models = connections.filter(({ category }) => category === "llm");
  return <Steps models={models} inbox={inboxes.find(({ enabled }) => enabled)} answered={tests[0]} />;
}

interface StepsProps {
  models: Connection[];
  inbox: Inbox | undefined;
  answered: Activity | undefined;
}

function Steps({ models, inbox, answered }: StepsProps) {
  const me = useMe();
  const { data: dns } = useQuery({ ...serviceDns, enabled: me.is_admin });
  const [chosen, setChosen] = useState<StepName>();
  const [passed, setPassed] = useState(false);
  const working = models.filter((model) => !isUnproven(model));
  const done: Record<StepName, boolean> = {
    account: true,
    dns: dns?.ready ?? false,
    model: working.length > 0 || inbox?.routed === true,
    inbox: inbox !== undefined,
    mail: answered !== undefined,
  };
  const names: StepName[] = me.is_admin
    ? ["account", "dns", "model", "inbox", "mail"]
    : ["account", "model", "inbox", "mail"];
  // The DNS may wait, and what it says may change while it is read: only the person goes past it, once.
  const waits = (name: StepName): boolean => (name === "dns" ? !passed && models.length === 0 : !done[name]);
  const open = chosen ?? names.find(waits) ?? "mail";
  const goOn = (): void => {
    setPassed(true);
    setChosen(undefined);
  };
  const stateOf = (name: StepName): StepState => ({
    number: names.indexOf(name) + 1,
    done: done[name],
    open: open === name,
    moved: passed,
    onOpen: () => {
      setPassed(true);
      setChosen(name);
    },
  });
  return (
    <Page title="Get started" intro="A few steps to your first answer. You can leave and come back.">
      <div className="grid gap-3">
        <Step title="Your account" state={stateOf("account")} summary={me.email}>
          {null}
        </Step>
        {me.is_admin && <DnsStep state={stateOf("dns")} onDone={goOn} />}
        <ModelStep state={stateOf("model")} models={models} onDone={goOn} />
        <InboxStep state={stateOf("inbox")} inbox={inbox} model={working[0]} onDone={goOn} />
        <MailStep state={stateOf("mail")} inbox={inbox} model={working[0]} answered={answered} />
      </div>
    </Page>
  );
}
