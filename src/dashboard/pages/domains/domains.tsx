import { useQuery } from "@tanstack/react-query";
import { Globe, Plus, RefreshCw } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { domainList, inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { CustomDomain } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Time } from "../../ui/time.tsx";
import { Records } from "./records.tsx";
import { LOOK_AGAIN_MS, ServiceDns } from "./service-dns.tsx";

const STATES: Record<string, { look: BadgeLook; word: string }> = {
  pending: { look: "warn", word: "Waiting for its records" },
  active: { look: "good", word: "Active" },
  failed: { look: "bad", word: "Records not seen" },
};

export function Domains() {
  const { is_admin } = useMe();
  const [adding, setAdding] = useState(false);
  const {
    data: domains,
    error,
    isPending,
    refetch,
  } = useQuery({
    ...domainList,
    refetchInterval: ({ state }) =>
      state.data?.some(({ status }) => status === "pending") ? LOOK_AGAIN_MS : false,
  });
  const button = (
    <Button look="main" icon={<Plus />} onClick={() => setAdding(true)}>
      Add a domain
    </Button>
  );
  return (
    <Page
      title="Domains"
      intro="Use addresses of your own domain. Publish a few DNS records, and this page sees by itself when they are there."
      actions={domains && domains.length > 0 && button}
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your domains" />}
      {domains?.length === 0 && (
        <Empty title="No domain yet" action={button}>
          Your inboxes have addresses of this server. With a domain of your own they read like
          help@your-company.com.
        </Empty>
      )}
      {domains?.map((domain) => (
        <DomainCard key={domain.id} domain={domain} />
      ))}
      {is_admin && <ServiceDomain />}
      {adding && <AddDomain onClose={() => setAdding(false)} />}
    </Page>
  );
}

function AddDomain({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const add = useChange<void, CustomDomain>({
    run: () => post<CustomDomain>("/custom-domains", { domain: name.trim() }),
    touches: [domainList.queryKey],
    done: onClose,
  });
  return (
    <Dialog title="Add a domain" onClose={onClose}>
      <Form change={add} act="Add it" onCancel={onClose}>
        <TextField
          label="Domain"
          hint="Best a subdomain that has no mail yet, such as ai.example.com: its mail will come here."
          fault={faultOf(add.error)("domain")}
          autoFocus
          required
          placeholder="ai.example.com"
          value={name}
          onChange={setName}
        />
      </Form>
    </Dialog>
  );
}

function DomainCard({ domain }: { domain: CustomDomain }) {
  const verify = useChange({
    run: () => post(`/custom-domains/${domain.id}/verify`),
    touches: [domainList.queryKey],
  });
  const state = STATES[domain.status];
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          <Globe aria-hidden className="size-4 text-soft" />
          {domain.domain}
          <Badge look={state?.look ?? "plain"}>{state?.word ?? domain.status}</Badge>
        </span>
      }
      actions={
        <>
          <Button icon={<RefreshCw />} busy={verify.isPending} onClick={() => verify.mutate()}>
            Look now
          </Button>
          <DeleteButton
            title={`Remove ${domain.domain}?`}
            act="Remove the domain"
            path={`/custom-domains/${domain.id}`}
            touches={[domainList.queryKey, inboxList.queryKey]}
          >
            <p>Its inboxes move to the server’s own domain and keep the part before the @.</p>
            <p>Mail to the old addresses will be refused.</p>
          </DeleteButton>
        </>
      }
    >
      <div className="grid gap-4">
        {domain.error && <Notice look="warn">{domain.error}</Notice>}
        <Fault error={verify.error} />
        {domain.publishable && <Records records={domain.dns_records} />}
        <p className="text-sm text-soft" role="status">
          {domain.last_checked_at === null ? (
            "Not looked for yet."
          ) : (
            <>
              Last looked for <Time at={domain.last_checked_at} />.
            </>
          )}
        </p>
      </div>
    </Card>
  );
}

/** The records of the domain of all inboxes that have none of their own; for whoever runs the server. */
function ServiceDomain() {
  return (
    <Card title="The server’s own domain">
      <ServiceDns />
    </Card>
  );
}
