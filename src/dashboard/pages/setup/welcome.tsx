import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { patch, post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection, ConnectionTest, Inbox } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { ConnectionForm } from "../connections/connection-form.tsx";
import { type Provider, PROVIDERS } from "../connections/providers.ts";
import { InboxTry } from "../inboxes/inbox-try.tsx";

/** From an empty account to the first answer: a model, an address, a mail. Each step shows what is there already. */
export function Welcome() {
  const { data: connections } = useQuery(connectionList);
  const { data: inboxes } = useQuery(inboxList);
  if (!connections || !inboxes) return <Loading what="what is there already" />;
  const models = connections.filter(({ category }) => category === "llm");
  const [inbox] = inboxes;
  return (
    <Page
      title="Get started"
      intro="Three steps to your first answer. You can leave at any time and come back."
    >
      <Step number={1} title="Connect a model" done={models.length > 0}>
        <Model models={models} />
      </Step>
      <Step number={2} title="Get an address" done={inbox !== undefined}>
        {inbox ? (
          <Copyable text={inbox.address} label="Copy the address" />
        ) : (
          <FirstInbox model={models[0]} />
        )}
      </Step>
      <Step number={3} title="Send a first mail" done={false}>
        {inbox ? (
          <>
            <Attach inbox={inbox} model={models[0]} />
            <InboxTry inbox={inbox} />
          </>
        ) : (
          <p className="text-soft">As soon as there is an address.</p>
        )}
      </Step>
      <p>
        <Link to="/" className="text-accent underline">
          Go to the activity
        </Link>
      </p>
    </Page>
  );
}

function Step({
  number,
  title,
  done,
  children,
}: {
  number: number;
  title: string;
  done: boolean;
  children: ReactNode;
}) {
  return (
    <section className="grid gap-3">
      <h2 className="flex items-center gap-2 text-lg font-semibold">
        {done ? (
          <CircleCheck aria-label="Done" className="size-6 text-good" />
        ) : (
          <span
            aria-hidden
            className="grid size-6 place-items-center rounded-full bg-accent text-sm text-accent-text"
          >
            {number}
          </span>
        )}
        {title}
      </h2>
      <div className="grid gap-3 sm:pl-8">{children}</div>
    </section>
  );
}

function Model({ models }: { models: Connection[] }) {
  const [chosen, setChosen] = useState<Provider>();
  const demo = useChange<void, ConnectionTest>({
    run: async () => {
      const { id } = await post<Connection>("/connections", { kind: "demo", label: "Demo model" });
      return post<ConnectionTest>(`/connections/${id}/test`);
    },
    touches: [connectionList.queryKey],
  });
  if (models.length > 0)
    return (
      <p>
        {models.map(({ label }) => label).join(", ")}.{" "}
        <Link to="/connections" className="text-accent underline">
          Connect another
        </Link>
      </p>
    );
  return (
    <>
      <p className="text-soft">
        It reads the mail and writes the answer. Without a key of your own, begin with the demo model: no AI,
        but you see how everything works.
      </p>
      <div className="flex flex-wrap gap-2">
        <Button look="main" busy={demo.isPending} onClick={() => demo.mutate()}>
          Begin with the demo model
        </Button>
        {PROVIDERS.filter(({ category, kind }) => category === "llm" && kind !== "demo").map((provider) => (
          <Button key={provider.kind} onClick={() => setChosen(provider)}>
            {provider.name}
          </Button>
        ))}
      </div>
      <Fault error={demo.error} />
      {chosen && <ConnectionForm provider={chosen} onClose={() => setChosen(undefined)} />}
    </>
  );
}

function FirstInbox({ model }: { model: Connection | undefined }) {
  const make = useChange<void, Inbox>({
    run: () =>
      post<Inbox>("/inboxes", { label: "Desk", ...(model ? { default_connection_id: model.id } : {}) }),
    touches: [inboxList.queryKey],
  });
  return (
    <>
      <p className="text-soft">What you write to it is done, and the answer comes back by mail.</p>
      <div className="flex flex-wrap gap-2">
        <Button look="main" busy={make.isPending} onClick={() => make.mutate()}>
          Get an address
        </Button>
        <Link to="/recipes" className={`${BUTTON} border border-line bg-card`}>
          Begin with a recipe
        </Link>
      </div>
      <Fault error={make.error} />
    </>
  );
}

/** An inbox that was made before there was a model gets it with one click. */
function Attach({ inbox, model }: { inbox: Inbox; model: Connection | undefined }) {
  const attach = useChange({
    run: () => patch(`/inboxes/${inbox.id}`, { default_connection_id: model?.id }),
    touches: [inboxList.queryKey],
  });
  if (inbox.routed) return null;
  return (
    <Notice look="warn">
      This inbox has no model yet.{" "}
      {model && (
        <Button busy={attach.isPending} onClick={() => attach.mutate()}>
          Use {model.label}
        </Button>
      )}
    </Notice>
  );
}
