import { ownerOf } from "./letters.ts";
import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { lookForRecords } from "./findings.ts";
import type { KeyHome } from "./key-home.ts";
import { leadsNowhere, publishable, unnamed } from "./nameless.ts";
import { type RecordView, recordViews, viewsWith } from "./records.ts";
import { checkServiceRecords } from "./service-check.ts";
import { serviceRecords, type WantedRecord } from "./service-records.ts";

/** A record as the operator sees it: of the service's own domain, or of one that an account has added. */
export type OperatorRecord = Omit<WantedRecord, "purpose"> & {
  purpose: WantedRecord["purpose"] | "ownership";
};

export type CheckedOperatorRecord = OperatorRecord & Pick<RecordView, "status" | "found" | "reason">;

const NOTES: Record<RecordView["purpose"], string> = {
  ownership: "shows whose the domain is",
  inbound_mx: "mail for the domain goes to this server",
  spf: "who may send for the domain",
  dkim: "a signature",
  dmarc: "what receivers do with forgeries",
};

/** The records to publish for a domain; see `serviceRecords`. */
export async function wantedRecords(
  app: App,
  home: KeyHome,
  addresses?: string[],
): Promise<OperatorRecord[]> {
  if (home.row === null) return namedRecords(app.config.smtp, await serviceRecords(app, addresses));
  const seen = {
    owner_email: await ownerOf(app, home.row),
    keys: await keyRows(app.db, home.row.id),
  };
  return recordViews(app, home.row, seen).map(({ status: _s, found: _f, reason: _r, ...record }) =>
    noted(record),
  );
}

function namedRecords(smtp: Config["smtp"], records: WantedRecord[]): OperatorRecord[] {
  return publishable(smtp, records).map((record) =>
    leadsNowhere(smtp, record) ? unnamed(smtp, record) : record,
  );
}

/** The records to publish for a domain, with what the DNS shows of them now. Changes nothing. */
export async function checkedRecords(app: App, home: KeyHome): Promise<CheckedOperatorRecord[]> {
  if (home.row === null) return checkServiceRecords(app);
  const keys = await keyRows(app.db, home.row.id);
  const findings = await lookForRecords(app, home.row, keys);
  const owner_email = await ownerOf(app, home.row);
  return viewsWith(app, home.row, { owner_email, keys, findings }).map(noted);
}

function noted<T extends Pick<RecordView, "purpose">>(record: T): T & { note: string } {
  return { ...record, note: NOTES[record.purpose] };
}
