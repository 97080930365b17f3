import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { endpointList } from "../../api/lists.ts";
import type { Endpoint, NewEndpoint as Made } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { bodyOf, EndpointFields, NEW_SETTINGS } from "./endpoint-fields.tsx";
import { deliveryCounts, REFRESH_MS } from "./queries.ts";

export function Webhooks() {
  const { data: endpoints, error, isPending, refetch } = useQuery(endpointList);
  const [making, setMaking] = useState(false);
  const { limits } = useMe();
  const button = (
    <Button look="main" icon={<Plus />} onClick={() => setMaking(true)}>
      New endpoint
    </Button>
  );
  return (
    <Page
      title="Webhooks"
      intro="Your own programs hear of every message: Mailwright calls a web address of theirs, and signs each call."
      actions={endpoints && endpoints.length > 0 && button}
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your endpoints" />}
      {endpoints?.length === 0 && (
        <Empty title="No endpoint yet" action={button}>
          An endpoint is a web address at which a program of yours listens. If you have no such program, you
          need none.
        </Empty>
      )}
      {endpoints && endpoints.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {endpoints.map((endpoint) => (
            <Row key={endpoint.id} endpoint={endpoint} />
          ))}
        </ul>
      )}
      {endpoints && (
        <p className="text-sm text-soft">
          <Allowance count={endpoints.length} limit={limits.webhooks} noun="endpoints" />
        </p>
      )}
      {making && <NewEndpoint onClose={() => setMaking(false)} />}
    </Page>
  );
}

function Row({ endpoint }: { endpoint: Endpoint }) {
  return (
    <li>
      <Link
        to="/webhooks/$endpoint_id"
        params={{ endpoint_id: endpoint.id }}
        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover"
      >
        <span className="grid min-w-0 flex-1">
          <span className="truncate font-mono text-sm">{endpoint.url}</span>
          {endpoint.description && <span className="truncate text-sm text-soft">{endpoint.description}</span>}
        </span>
        <EndpointState endpoint={endpoint} />
      </Link>
    </li>
  );
}

export function EndpointState({ endpoint }: { endpoint: Endpoint }) {
  const { data: counts } = useQuery({
    ...deliveryCounts(endpoint.id),
    enabled: endpoint.enabled,
    refetchInterval: REFRESH_MS,
    // On the way from its page to the list it may have been deleted.
    staleTime: 2 * REFRESH_MS,
  });
  if (!endpoint.enabled) return <Badge look="bad">Switched off</Badge>;
  if (endpoint.consecutive_failures > 0)
    return <Badge look="warn">{endpoint.consecutive_failures} failed in a row</Badge>;
  if (counts && counts.retrying > 0)
    return <Badge look="warn">{counts.retrying} failed, to be tried again</Badge>;
  return <Badge look="good">On</Badge>;
}

function NewEndpoint({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [settings, setSettings] = useState(NEW_SETTINGS);
  const create = useChange<void, Made>({
    run: () => post<Made>("/v1/webhooks", bodyOf(settings)),
    touches: [endpointList.queryKey],
  });
  const made = create.data;
  if (!made)
    return (
      <Dialog title="New endpoint" onClose={onClose}>
        <Form change={create} act="Make the endpoint" onCancel={onClose}>
          <EndpointFields settings={settings} fault={faultOf(create.error)} onChange={setSettings} />
        </Form>
      </Dialog>
    );
  return (
    <Dialog title="New endpoint" onClose={onClose}>
      <div className="grid gap-4">
        <Notice look="good">
          The endpoint is made. This secret signs what is sent to it. Give it to your program; you can look at
          it again later.
        </Notice>
        <Copyable text={made.secret} label="Copy the secret" />
        <div className="flex justify-end">
          <Button
            look="main"
            onClick={() => void navigate({ to: "/webhooks/$endpoint_id", params: { endpoint_id: made.id } })}
          >
            Open the endpoint
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
