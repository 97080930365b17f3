import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { CopyButton } from "../../ui/copy.tsx";

/** A record to publish in the DNS, with what is there now. */
export interface DnsRecord {
  type: string;
  name: string;
  /** The value; null where only the owner knows it: the note says what belongs there. */
  value: string | null;
  priority: number | null;
  purpose: string;
  required: boolean;
  status: string;
  found: string[];
  reason: string;
  note?: string;
}

const PURPOSES: Record<string, string> = {
  ownership: "Shows that the domain is yours",
  address: "Says where the server is",
  inbound_mx: "Brings its mail here",
  spf: "Says that this server may send for it",
  dkim: "Signs what is sent",
  dmarc: "Says what others do with forgeries",
  ptr: "Names the server’s address",
  mta_sts: "Has others send encrypted only",
  mta_sts_host: "Says where that policy is",
  tls_rpt: "Has trouble with encryption reported",
};
const STATES: Record<string, { look: BadgeLook; word: string }> = {
  verified: { look: "good", word: "Seen" },
  missing: { look: "warn", word: "Missing" },
  mismatch: { look: "bad", word: "Different" },
  pending: { look: "plain", word: "Not seen yet" },
};

/** The records that a domain needs, and below them, folded, those that only help. */
export function Records({ records }: { records: DnsRecord[] }) {
  const optional = records.filter(({ required }) => !required);
  return (
    <div className="grid gap-3">
      <Rows records={records.filter(({ required }) => required)} />
      {optional.length > 0 && (
        <details className="rounded-md border border-line px-3">
          <summary className="py-2 text-sm font-medium">
            {optional.length} more that make others trust your mail
          </summary>
          <Rows records={optional} />
        </details>
      )}
    </div>
  );
}

function Rows({ records }: { records: DnsRecord[] }) {
  return (
    <ul className="divide-y divide-line">
      {records.map((record) => (
        <Row key={`${record.type} ${record.name} ${record.purpose} ${record.value}`} record={record} />
      ))}
    </ul>
  );
}

function Row({ record }: { record: DnsRecord }) {
  const state = STATES[record.status];
  return (
    <li className="grid gap-2 py-3">
      <div className="flex flex-wrap items-center gap-2">
        <span className="font-medium">{PURPOSES[record.purpose] ?? record.purpose}</span>
        <Badge look={state?.look ?? "plain"}>{state?.word ?? record.status}</Badge>
      </div>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-center gap-x-4 gap-y-1 text-sm">
        <dt className="text-soft">Type</dt>
        <dd>
          {record.type}
          {record.priority !== null && `, priority ${record.priority}`}
        </dd>
        <Line term="Name" text={record.name} />
        {record.value === null ? <Own note={record.note} /> : <Line term="Value" text={record.value} />}
        {record.status === "mismatch" && record.found.length > 0 && (
          <>
            <dt className="text-soft">There now</dt>
            <dd className="wrap-anywhere">
              <code className="font-mono">{record.found.join(" | ")}</code>
            </dd>
          </>
        )}
      </dl>
      {record.status !== "verified" && <p className="text-sm text-soft wrap-anywhere">{record.reason}</p>}
    </li>
  );
}

function Own({ note }: { note: string | undefined }) {
  return (
    <>
      <dt className="text-soft">Value</dt>
      <dd className="wrap-anywhere">{note}</dd>
    </>
  );
}

function Line({ term, text }: { term: string; text: string }) {
  return (
    <>
      <dt className="text-soft">{term}</dt>
      <dd className="flex min-w-0 items-center gap-1">
        <code className="min-w-0 font-mono wrap-anywhere">{text}</code>
        <CopyButton text={text} label={`Copy the ${term.toLowerCase()}`} />
      </dd>
    </>
  );
}
