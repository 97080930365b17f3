import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection, ConnectionTest } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { ConnectionForm } from "../connections/connection-form.tsx";
import { type Provider, PROVIDERS } from "../connections/providers.ts";
import { isProven } from "./first-steps.ts";
import { Step, type StepState } from "./step.tsx";

const OTHERS = PROVIDERS.filter(({ category, kind }) => category === "llm" && kind !== "demo");
const touches = [connectionList.queryKey, inboxList.queryKey];
/** The key of every change on this page that makes or tests a model. */
export const MODEL_CHANGE = ["first-model"];
const testOf = (id: string) => post<ConnectionTest>(`/connections/${id}/test`);

interface ModelStepProps {
  state: StepState;
  models: Connection[];
  onDone: () => void;
}

/**
 * The step that ends once the test of a model found nothing against it. The server keeps what it found out, so that it is here
 * after a reload too.
 */
export function ModelStep({ state, models, onDone }: ModelStepProps) {
  const [chosen, setChosen] = useState<Provider>();
  const done = (verdict: ConnectionTest): void => {
    if (verdict.ok) onDone();
  };
  const test = useChange<string, ConnectionTest>({ run: testOf, touches, done, key: MODEL_CHANGE });
  const demo = useChange<void, ConnectionTest>({
    run: async () =>
      testOf((await post<Connection>("/connections", { kind: "demo", label: "Demo model" })).id),
    touches,
    done,
    key: MODEL_CHANGE,
  });
  return (
    <Step
      title="Connect a model"
      state={state}
      summary={models.length > 0 && <Models models={models} />}
      {...(models.length > 0 ? { again: "Connect another" } : {})}
    >
      <p className="text-soft">
        It reads the mail and writes the answer. No key at hand? The demo model is no AI, but shows how
        everything works.
      </p>
      {models
        .filter((model) => !isProven(model))
        .map((model) => (
          <Unproven
            key={model.id}
            model={model}
            busy={test.isPending && test.variables === model.id}
            onTest={() => test.mutate(model.id)}
          />
        ))}
      <div className="flex flex-wrap gap-2">
        {!models.some(({ kind }) => kind === "demo") && (
          <Button look={state.done ? "plain" : "main"} busy={demo.isPending} onClick={() => demo.mutate()}>
            Begin with the demo model
          </Button>
        )}
        {OTHERS.map((provider) => (
          <Button key={provider.kind} onClick={() => setChosen(provider)}>
            {provider.name}
          </Button>
        ))}
      </div>
      <Fault error={demo.error ?? test.error} />
      {state.done && (
        <div>
          <Button look="main" disabled={demo.isPending || test.isPending} onClick={onDone}>
            Go on
          </Button>
        </div>
      )}
      {chosen && (
        <ConnectionForm
          provider={chosen}
          onClose={() => setChosen(undefined)}
          onMade={({ id }) => {
            setChosen(undefined);
            test.mutate(id);
          }}
        />
      )}
    </Step>
  );
}

function Models({ models }: { models: Connection[] }) {
  const proven = models.filter(isProven);
  const names = (proven.length === 0 ? models : proven).map(({ label }) => label).join(", ");
  if (proven.length > 0)
    return `${names}: connected, and tested without asking ${proven.length === 1 ? "it" : "them"} anything.`;
  const fails = models.some(({ status }) => status === "error");
  return `${names}: connected, but ${fails ? "does not work" : "not tested yet"}.`;
}

function Unproven({ model, busy, onTest }: { model: Connection; busy: boolean; onTest: () => void }) {
  const { id, label, last_error } = model;
  return (
    <Notice look={last_error && !busy ? "bad" : "info"}>
      <p>{busy ? `Asking ${label}…` : (last_error ?? `${label} has not been tested.`)}</p>
      <div className="mt-2 flex flex-wrap items-center gap-3 text-text">
        <Button busy={busy} onClick={onTest}>
          Test {label}
        </Button>
        <Link to="/connections/$connection_id" params={{ connection_id: id }} className="underline">
          Change it
        </Link>
      </div>
    </Notice>
  );
}
