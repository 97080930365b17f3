import { queryOptions, useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { get } from "../../api/client.ts";
import type { ServiceDns as View } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { Records } from "./records.tsx";

/** How often records that are still missing are looked for again while the page is open. */
export const LOOK_AGAIN_MS = 15_000;

export const serviceDns = queryOptions({
  queryKey: ["service-dns"],
  queryFn: ({ signal }) => get<View>("/admin/dns", signal),
  refetchInterval: ({ state }) => (state.data?.public && !state.data.ready ? LOOK_AGAIN_MS : false),
});

/** The records of the server's own domain, looked for again and again until all that are needed are seen. */
export function ServiceDns() {
  const { data, error, isPending, isFetching, refetch, dataUpdatedAt } = useQuery(serviceDns);
  return (
    <div className="grid gap-3">
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="what the DNS says" />}
      {data && !data.public && <Nameless name={data.domain} />}
      {data?.public && (
        <>
          <Verdict view={data} />
          <Records records={data.records} />
          <div className="flex flex-wrap items-center gap-3">
            <Button icon={<RefreshCw />} busy={isFetching} onClick={() => void refetch()}>
              Look again
            </Button>
            <p className="text-sm text-soft">
              Last looked <Time at={dataUpdatedAt / 1000} />.
            </p>
          </div>
        </>
      )}
    </div>
  );
}

function Verdict({ view: { domain, ready, records } }: { view: View }) {
  const needed = records.filter(({ required }) => required);
  const seen = needed.filter(({ status }) => status === "verified");
  if (ready) return <Notice look="good">All is there: mail for {domain} finds this server.</Notice>;
  return (
    <>
      <p className="text-soft">
        So that mail for {domain} finds this server, publish these records where you manage the domain. This
        page looks again by itself.
      </p>
      <p role="status" className="text-sm font-medium">
        {seen.length} of {needed.length} are seen.
      </p>
    </>
  );
}

function Nameless({ name }: { name: string }) {
  return (
    <p className="text-soft">
      Only trying it out? Then nothing is needed here. For mail from outside the server needs a public name
      instead of <code className="font-mono">{name}</code>: set{" "}
      <code className="font-mono">smtp.hostname</code> and <code className="font-mono">smtp.domain</code> in
      its settings file.
    </p>
  );
}
