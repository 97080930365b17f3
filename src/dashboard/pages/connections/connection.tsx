import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { LogIn } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, patch, post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection as ConnectionRow, ConnectionTest } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Field, Select } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { StatusOf } from "./connections.tsx";
import { providerOf } from "./providers.ts";

export function Connection() {
  const { connection_id } = useParams({ strict: false });
  const { data: connections, error, refetch } = useQuery(connectionList);
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!connections) return <Loading what="the connection" />;
  const connection = connections.find(({ id }) => id === connection_id);
  return connection ? <ConnectionPage connection={connection} /> : <NotFound />;
}

function ConnectionPage({ connection }: { connection: ConnectionRow }) {
  const atOnce = "test" in useSearch({ strict: false });
  const started = useRef(false);
  const test = useChange<void, ConnectionTest>({
    run: () => post<ConnectionTest>(`/connections/${connection.id}/test`),
    touches: [connectionList.queryKey],
  });
  const { mutate } = test;
  useEffect(() => {
    if (!atOnce || started.current) return;
    started.current = true;
    mutate();
  }, [atOnce, mutate]);
  return (
    <Page
      title={connection.label}
      intro={providerOf(connection.kind)?.words}
      actions={
        <>
          <Button busy={test.isPending} onClick={() => mutate()}>
            Test it
          </Button>
          <Delete connection={connection} />
        </>
      }
    >
      <Card>
        <div className="grid gap-3">
          <p className="flex flex-wrap items-center gap-2">
            <StatusOf connection={connection} />
            <span className="text-sm text-soft">
              {connection.last_tested_at === null ? (
                "Never tested"
              ) : (
                <>
                  Tested <Time at={connection.last_tested_at} />
                </>
              )}
              {` · used by ${connection.used_by_inboxes === 1 ? "one inbox" : `${connection.used_by_inboxes} inboxes`}`}
            </span>
          </p>
          <Fault error={test.error} />
          {test.data ? (
            <Verdict verdict={test.data} />
          ) : (
            connection.last_error && <Notice look="bad">{connection.last_error}</Notice>
          )}
          {connection.category === "mcp" && <SignInThere connection={connection} />}
        </div>
      </Card>
      <Settings key={connection.updated} connection={connection} models={test.data?.models ?? []} />
    </Page>
  );
}

function Verdict({ verdict }: { verdict: ConnectionTest }) {
  if (verdict.error) return <Notice look="bad">{verdict.error.message}</Notice>;
  return (
    <div className="grid gap-3">
      <Notice look="good">
        {verdict.detail} ({verdict.latency_ms} ms)
      </Notice>
      {verdict.tools.length > 0 && (
        <div>
          <h3 className="font-medium">
            Tools{verdict.server_info && ` of ${verdict.server_info.name} ${verdict.server_info.version}`}
          </h3>
          <ul className="mt-1 flex flex-wrap gap-1">
            {verdict.tools.map((tool) => (
              <li key={tool} className="rounded-md bg-hover px-2 py-0.5 font-mono text-sm">
                {tool}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function SignInThere({ connection }: { connection: ConnectionRow }) {
  const leave = useChange<void, { authorize_url: string }>({
    run: () => post<{ authorize_url: string }>(`/integrations/mcp/${connection.id}/connect`),
    touches: [],
    done: ({ authorize_url }) => location.assign(authorize_url),
  });
  return (
    <div className="grid justify-items-start gap-2">
      <Button icon={<LogIn />} busy={leave.isPending} onClick={() => leave.mutate()}>
        Sign in at this server
      </Button>
      <Fault error={leave.error} />
    </div>
  );
}

function Settings({ connection, models }: { connection: ConnectionRow; models: string[] }) {
  const say = useToast();
  const [label, setLabel] = useState(connection.label);
  const [model, setModel] = useState(connection.model ?? "");
  const [credential, setCredential] = useState("");
  const save = useChange<void, ConnectionRow>({
    run: () =>
      patch<ConnectionRow>(`/connections/${connection.id}`, {
        label,
        ...(connection.category === "llm" ? { model: model || null } : {}),
        ...(credential ? { credential } : {}),
      }),
    touches: [connectionList.queryKey, inboxList.queryKey],
    done: () => say("Saved."),
  });
  const fault = faultOf(save.error);
  const key = providerOf(connection.kind)?.key;
  return (
    <Card title="Settings">
      <Form change={save} act="Save">
        <TextField label="Name" fault={fault("label")} maxLength={100} value={label} onChange={setLabel} />
        {connection.category === "llm" && (
          <ModelField model={model} models={models} fault={fault("model")} onChange={setModel} />
        )}
        {key && (
          <TextField
            label="New key"
            hint={
              connection.credential_hint
                ? `The one that is kept ends in ${connection.credential_hint}. Leave this empty to keep it.`
                : key.hint
            }
            fault={fault("credential")}
            type="password"
            autoComplete="off"
            value={credential}
            onChange={setCredential}
          />
        )}
      </Form>
    </Card>
  );
}

interface ModelFieldProps {
  model: string;
  /** What a test has found, if there was one. */
  models: string[];
  fault: string | undefined;
  onChange: (model: string) => void;
}

function ModelField({ model, models, fault, onChange }: ModelFieldProps) {
  if (models.length === 0)
    return (
      <TextField
        label="Model"
        hint="A test shows which ones there are."
        fault={fault}
        maxLength={200}
        value={model}
        onChange={onChange}
      />
    );
  return (
    <Field label="Model" fault={fault}>
      <Select value={model} onChange={(event) => onChange(event.target.value)}>
        <option value="">The usual one of this provider</option>
        {[...new Set([...models, ...(model ? [model] : [])])].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </Select>
    </Field>
  );
}

function Delete({ connection }: { connection: ConnectionRow }) {
  const navigate = useNavigate();
  const say = useToast();
  return (
    <DeleteButton
      title={`Delete ${connection.label}?`}
      act="Delete the connection"
      path={`/connections/${connection.id}`}
      touches={[connectionList.queryKey, inboxList.queryKey]}
      done={() => {
        say("The connection is deleted.");
        void navigate({ to: "/connections" });
      }}
    >
      <p>
        {connection.used_by_inboxes === 0
          ? "No inbox uses it."
          : "The inboxes that use it go on without it, and say so."}
      </p>
      <p>Its key is erased here, and given back to the provider where that is possible.</p>
    </DeleteButton>
  );
}
