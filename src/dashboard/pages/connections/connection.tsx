import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useChange } from "../../api/changes.ts";
import { patch, post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection as ConnectionRow, ConnectionTest, Inbox } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { PageFault } from "../../shell/page-fault.tsx";
import { Budget } from "../../ui/budget.tsx";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading, Spinner } from "../../ui/spinner.tsx";
import { ClockTime, Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { InboxLinks } from "../inboxes/inbox-links.tsx";
import { isProgram } from "./address-field.tsx";
import { AskFirst } from "./ask-first.tsx";
import { ConnectionSettings } from "./connection-settings.tsx";
import { StatusOf } from "./connections.tsx";
import { FailedTest } from "./failed-test.tsx";
import { providerOf } from "./providers.ts";
import { PullModel, USUAL_OLLAMA_MODEL } from "./pull-model.tsx";
import { shortTarget } from "./short-target.ts";
import { SignInThere } from "./sign-in-there.tsx";

export function Connection() {
  const { connection_id } = useParams({ strict: false });
  const { data: connections, error, refetch } = useQuery(connectionList);
  if (error) return <PageFault error={error} reset={() => void refetch()} />;
  if (!connections) return <Loading what="the connection" />;
  const connection = connections.find(({ id }) => id === connection_id);
  return connection ? <ConnectionPage key={connection.id} connection={connection} /> : <NotFound />;
}

function ConnectionPage({ connection }: { connection: ConnectionRow }) {
  const provider = providerOf(connection.kind);
  const test = useTest(connection);
  return (
    <Page
      title={connection.label}
      intro={provider?.words}
      actions={
        <>
          <Button busy={test.isPending} onClick={() => test.mutate()}>
            Test it
          </Button>
          <Delete connection={connection} />
        </>
      }
    >
      <Card>
        <div className="grid gap-3">
          <StateLine connection={connection} />
          <div role="status" className="grid gap-3">
            {test.isPending && (
              <p className="flex items-center gap-2 text-soft">
                <Spinner /> Asking it…
              </p>
            )}
            {!test.isPending && test.data && connection.status !== "untested" && (
              <Verdict verdict={test.data} connection={connection} onMended={() => test.mutate()} />
            )}
          </div>
          <Fault error={test.error} />
          {!test.isPending && !test.data && connection.last_error && (
            <Notice look="bad">{connection.last_error}</Notice>
          )}
          {connection.category === "mcp" && (
            <p className="text-sm text-soft">
              It may learn whatever the mails and contexts of its inboxes say: what only reads is asked
              without being named.
            </p>
          )}
          <SignIn connection={connection} asked={ASKS.has(test.data?.error?.code ?? "")} />
        </div>
      </Card>
      {provider && (
        <ConnectionSettings connection={connection} provider={provider} models={test.data?.models ?? []} />
      )}
      <ModelBudget connection={connection} />
      {connection.category !== "llm" && <AskFirst connection={connection} />}
      {connection.category !== "integration" && <WhereUsed connection={connection} />}
    </Page>
  );
}

/** What a model that may cost something may cost. */
function ModelBudget({ connection: { id, category, kind, monthly_budget } }: { connection: ConnectionRow }) {
  if (category !== "llm" || kind === "demo") return null;
  return (
    <Budget
      what="What its models may cost"
      path={`/connections/${id}`}
      budget={monthly_budget}
      touches={[connectionList.queryKey]}
    />
  );
}

function StateLine({ connection }: { connection: ConnectionRow }) {
  const { last_tested_at, target, status } = connection;
  return (
    <div className="grid gap-1 text-sm text-soft">
      <p className="flex flex-wrap items-center gap-2">
        <StatusOf connection={connection} />
        {last_tested_at !== null && <Since status={status} at={last_tested_at} />}
      </p>
      {target !== null && (
        <p>
          An instruction calls it{" "}
          <code className="font-mono text-text wrap-anywhere">@{shortTarget(target)}</code>
        </p>
      )}
    </div>
  );
}

/** When a state was found. A failed test says less of its beginning than messages that failed before it. */
function Since({ status, at }: { status: ConnectionRow["status"]; at: number }) {
  if (status === "error")
    return (
      <span>
        at least since <ClockTime at={at} />
      </span>
    );
  return (
    <span>
      {status === "untested" ? "Changed since it was checked" : "Checked"} <Time at={at} />
    </span>
  );
}

/** The outcomes of a test at a server that wants a key or a sign-in. */
const ASKS = new Set(["no_credential", "invalid_credentials"]);

/**
 * The button to sign in at a service that takes a person's consent; `asked`: the last test failed for want of a key.
 */
function SignIn({ connection, asked }: { connection: ConnectionRow; asked: boolean }) {
  const { id, kind, category, base_url, auth, status } = connection;
  // Nobody is sent to sign in whose connection works without, or fails for another reason.
  const signs_in = auth === "oauth" || status === "needs_auth";
  if (category === "mcp" && !isProgram({ base_url }) && (signs_in || asked))
    return <SignInThere path={`/integrations/mcp/${id}/connect`} name="this server" />;
  const provider = providerOf(kind);
  if (category === "integration" && signs_in)
    return (
      <SignInThere
        path={`/integrations/${kind}/connect`}
        name={provider?.name ?? kind}
        token={provider?.token}
      />
    );
  return null;
}

/**
 * The test of a connection. It begins at once after a form was sent, and for a working tool, since it tells what the
 * tool can do.
 */
function useTest({ id, category, status }: ConnectionRow) {
  const isNew = "test" in useSearch({ strict: false });
  const started = useRef(false);
  const test = useChange<void, ConnectionTest>({
    run: () => post<ConnectionTest>(`/connections/${id}/test`),
    touches: [connectionList.queryKey],
  });
  const { mutate } = test;
  const atOnce = isNew || (category === "mcp" && status === "ok");
  useEffect(() => {
    if (!atOnce || started.current) return;
    started.current = true;
    mutate();
  }, [atOnce, mutate]);
  return test;
}

interface VerdictProps {
  verdict: ConnectionTest;
  connection: ConnectionRow;
  onMended: () => void;
}

function Verdict({ verdict, connection, onMended }: VerdictProps) {
  const move = useChange<string, ConnectionRow>({
    run: (base_url) => patch<ConnectionRow>(`/connections/${connection.id}`, { base_url }),
    touches: [connectionList.queryKey, inboxList.queryKey],
    done: onMended,
  });
  const model = connection.model ?? USUAL_OLLAMA_MODEL;
  if (verdict.error)
    return (
      <>
        <FailedTest verdict={verdict} busy={move.isPending} onMove={(base_url) => move.mutate(base_url)}>
          {connection.kind === "ollama" && verdict.error.code === "model_not_found" && (
            <PullModel
              path={`/connections/${connection.id}/pull`}
              body={{ model }}
              model={model}
              onDone={onMended}
            />
          )}
        </FailedTest>
        <Fault error={move.error} />
      </>
    );
  return (
    <>
      <Notice look="good">
        <p>
          {verdict.detail} ({verdict.latency_ms} ms)
        </p>
        {connection.category === "llm" && connection.kind !== "demo" && (
          <p className="text-text">
            The model was asked nothing, so that the test costs nothing: the next message shows whether it
            answers.
          </p>
        )}
      </Notice>
      {verdict.tools.length > 0 && (
        <div>
          <h2 className="font-medium">
            What it can do
            {verdict.server_info && `, says ${verdict.server_info.name} ${verdict.server_info.version}`}
          </h2>
          <ul aria-label="What it can do" className="mt-1 flex flex-wrap gap-1">
            {verdict.tools.map((tool) => (
              <li key={tool} className="rounded-md bg-hover px-2 py-0.5 font-mono text-sm wrap-anywhere">
                {tool}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

/** Whether an inbox uses a connection, as its model, in a rule or as a tool server. */
function isUsedBy({ default_connection_id, mcp_connection_ids, rules }: Inbox, id: string): boolean {
  return (
    default_connection_id === id ||
    mcp_connection_ids.includes(id) ||
    rules.some(({ do: acts }) => acts.connection_id === id)
  );
}

function WhereUsed({ connection: { id, category } }: { connection: ConnectionRow }) {
  const { data: inboxes } = useQuery(inboxList);
  const uses = (inbox: Inbox): boolean => isUsedBy(inbox, id);
  return (
    <Card title="Where it is used">
      {inboxes && (
        <InboxLinks inboxes={inboxes} uses={uses} tab={category === "mcp" ? "tools" : "settings"} />
      )}
    </Card>
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
        <WithoutIt connection={connection} />
      </p>
      <p>
        Its key is erased here, and given back to the provider where that is possible. Both cannot be undone.
      </p>
    </DeleteButton>
  );
}

/** The most inboxes that are named in a sentence. */
const FEW = 3;

/** Which inboxes lose a connection, and what that means for their mail. */
function WithoutIt({ connection: { id, category, used_by_inboxes: count } }: { connection: ConnectionRow }) {
  const { data: inboxes = [] } = useQuery(inboxList);
  if (count === 0) return "No inbox uses it.";
  const names = inboxes.filter((inbox) => isUsedBy(inbox, id)).map(({ label, address }) => label || address);
  const more = names.length > FEW ? ` and ${names.length - FEW} more` : "";
  const [who, whose] = count === 1 ? ["1 inbox uses it", "Its"] : [`${count} inboxes use it`, "Their"];
  const what =
    category === "llm"
      ? `${whose} mail fails from then on, until another model is chosen.`
      : "Runs there go on without it.";
  return `${who}: ${names.slice(0, FEW).join(", ")}${more}. ${what}`;
}
