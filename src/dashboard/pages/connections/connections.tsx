import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { connectionList } from "../../api/lists.ts";
import type { Connection } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { ConnectionForm } from "./connection-form.tsx";
import { CATEGORIES, connectWords, iconOf, type Provider, PROVIDERS } from "./providers.ts";

const STATES: Record<string, { look: BadgeLook; word: string }> = {
  ok: { look: "good", word: "Connected" },
  untested: { look: "plain", word: "Not tested" },
  error: { look: "bad", word: "Does not work" },
  needs_auth: { look: "warn", word: "Sign in again" },
};

export function Connections() {
  const { data: connections, error, isPending, refetch } = useQuery(connectionList);
  const [adding, setAdding] = useState<Provider>();
  return (
    <Page
      title="Connections"
      intro="The model that answers, the tools it may use, and the accounts it may work in. Each belongs to you alone."
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your connections" />}
      {connections && <Arrival connections={connections} />}
      {connections &&
        CATEGORIES.map(([category, title, words]) => (
          <section key={category} className="grid gap-3">
            <div>
              <h2 className="font-semibold">{title}</h2>
              <p className="text-sm text-soft">{words}</p>
            </div>
            <Own connections={connections.filter((connection) => connection.category === category)} />
            <ul className="grid gap-2 sm:grid-cols-2 lg:grid-cols-3">
              {PROVIDERS.filter((provider) => provider.category === category).map((provider) => (
                <li key={provider.kind}>
                  <ProviderButton provider={provider} onChoose={() => setAdding(provider)} />
                </li>
              ))}
            </ul>
          </section>
        ))}
      {adding && <ConnectionForm provider={adding} onClose={() => setAdding(undefined)} />}
    </Page>
  );
}

/** Shown to somebody who comes back from the consent page of a service. */
function Arrival({ connections }: { connections: Connection[] }) {
  const search = useSearch({ strict: false });
  const kind = "connected" in search ? search.connected : undefined;
  const newest = connections
    .filter((connection) => connection.kind === kind)
    .reduce<Connection | undefined>(
      (last, one) => (last && last.updated > one.updated ? last : one),
      undefined,
    );
  if (!newest) return null;
  return (
    <Notice look="good">
      {newest.label} is connected.{" "}
      <Link to="/connections/$connection_id" params={{ connection_id: newest.id }} className="underline">
        See what it can do
      </Link>
    </Notice>
  );
}

function Own({ connections }: { connections: Connection[] }) {
  if (connections.length === 0) return null;
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
      {connections.map((connection) => {
        const Icon = iconOf(connection.kind);
        return (
          <li key={connection.id}>
            <Link
              to="/connections/$connection_id"
              params={{ connection_id: connection.id }}
              className="flex flex-wrap items-center gap-3 px-4 py-3 hover:bg-hover"
            >
              <Icon aria-hidden className="size-4 text-soft" />
              <span className="min-w-0 flex-1 basis-40 truncate font-medium">{connection.label}</span>
              <span className="truncate text-sm text-soft">{connection.model ?? connection.base_url}</span>
              <StatusOf connection={connection} />
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

export function StatusOf({ connection: { status } }: { connection: Connection }) {
  const state = STATES[status];
  return <Badge look={state?.look ?? "plain"}>{state?.word ?? status}</Badge>;
}

function ProviderButton({ provider, onChoose }: { provider: Provider; onChoose: () => void }) {
  const { icon: Icon, words } = provider;
  return (
    <button
      type="button"
      onClick={onChoose}
      className="flex h-full w-full items-start gap-3 rounded-xl border border-dashed border-line p-3 text-left hover:border-solid hover:bg-card"
    >
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0 text-soft" />
      <span className="grid">
        <span className="font-medium">{connectWords(provider)}</span>
        <span className="text-sm text-soft">{words}</span>
      </span>
    </button>
  );
}
