import type { Migration } from "kysely/migration";
import { foundation } from "./0001-foundation.ts";
import { accountsAndResources } from "./0002-accounts-and-resources.ts";
import { tools } from "./0003-tools.ts";
import { webhooksAndBilling } from "./0004-webhooks-and-billing.ts";
import { operation } from "./0005-operation.ts";
import { outbound } from "./0006-outbound.ts";
import { dkimKeys } from "./0007-dkim-keys.ts";
import { retention } from "./0008-retention.ts";
import { heldKinds } from "./0010-held-kinds.ts";
import { mailIndexes } from "./0011-mail-indexes.ts";
import { mailKeys } from "./0012-mail-keys.ts";
import { waysIn } from "./0013-ways-in.ts";
import { sharesAndStorage } from "./0014-shares-and-storage.ts";
import { dueJobs } from "./0015-due-jobs.ts";
import { codeAskers } from "./0016-code-askers.ts";
import { segmentChecks } from "./0017-segment-checks.ts";
import { delays } from "./0019-delays.ts";
import { boundedWork } from "./0020-bounded-work.ts";
import { storedEvents } from "./0021-stored-events.ts";
import { repeatedEvents } from "./0025-repeated-events.ts";
import { firstOfLane } from "./0026-first-of-lane.ts";
import { laterJobs } from "./0028-later-jobs.ts";
import { heavyJobs } from "./0029-heavy-jobs.ts";
import { jobKeys } from "./0027-job-keys.ts";
import { contextScope } from "./0030-context-scope.ts";
import { defaultInbox } from "./0031-default-inbox.ts";
import { metadata } from "./0032-metadata.ts";
import { inboxPauses } from "./0035-inbox-pauses.ts";
import { deletedMessages } from "./0036-deleted-messages.ts";
import { redoneMessages } from "./0037-redone-messages.ts";
import { rules } from "./0038-rules.ts";
import { entrustedLetters } from "./0039-entrusted-letters.ts";
import { schedules } from "./0040-schedules.ts";
import { writtenTexts } from "./0041-written-texts.ts";
import { readByDigests } from "./0042-read-by-digests.ts";
import { approvals } from "./0043-approvals.ts";
import { brought } from "./0044-brought.ts";
import { shownCalls } from "./0045-shown-calls.ts";
import { search } from "./0046-search.ts";
import { contextVersions } from "./0047-context-versions.ts";
import { askedByKeys } from "./0048-asked-by-keys.ts";
import { readFrom } from "./0049-read-from.ts";
import { replays } from "./0050-replays.ts";
import { writtenBy } from "./0051-written-by.ts";
import { readByOlder } from "./0053-read-by-older.ts";
import { costs } from "./0054-costs.ts";
import { fallbacks } from "./0055-fallbacks.ts";
import { changes } from "./0056-changes.ts";
import { testRuns } from "./0057-test-runs.ts";
import { fromMemory } from "./0058-from-memory.ts";

/** In order, forward only. A migration that has landed is never edited. */
export const migrations: Record<string, Migration> = {
  "0001-foundation": foundation,
  "0002-accounts-and-resources": accountsAndResources,
  "0003-tools": tools,
  "0004-webhooks-and-billing": webhooksAndBilling,
  "0005-operation": operation,
  "0006-outbound": outbound,
  "0007-dkim-keys": dkimKeys,
  "0008-retention": retention,
  "0010-held-kinds": heldKinds,
  "0011-mail-indexes": mailIndexes,
  "0012-mail-keys": mailKeys,
  "0013-ways-in": waysIn,
  "0014-shares-and-storage": sharesAndStorage,
  "0015-due-jobs": dueJobs,
  "0016-code-askers": codeAskers,
  "0017-segment-checks": segmentChecks,
  "0019-delays": delays,
  "0020-bounded-work": boundedWork,
  "0021-stored-events": storedEvents,
  "0025-repeated-events": repeatedEvents,
  "0026-first-of-lane": firstOfLane,
  "0027-job-keys": jobKeys,
  "0028-later-jobs": laterJobs,
  "0029-heavy-jobs": heavyJobs,
  "0030-context-scope": contextScope,
  "0031-default-inbox": defaultInbox,
  "0032-metadata": metadata,
  "0035-inbox-pauses": inboxPauses,
  "0036-deleted-messages": deletedMessages,
  "0037-redone-messages": redoneMessages,
  "0038-rules": rules,
  "0039-entrusted-letters": entrustedLetters,
  "0040-schedules": schedules,
  "0041-written-texts": writtenTexts,
  "0042-read-by-digests": readByDigests,
  "0043-approvals": approvals,
  "0044-brought": brought,
  "0045-shown-calls": shownCalls,
  "0046-search": search,
  "0047-context-versions": contextVersions,
  "0048-asked-by-keys": askedByKeys,
  "0049-read-from": readFrom,
  "0050-replays": replays,
  "0051-written-by": writtenBy,
  "0053-read-by-older": readByOlder,
  "0054-costs": costs,
  "0055-fallbacks": fallbacks,
  "0056-changes": changes,
  "0057-test-runs": testRuns,
  "0058-from-memory": fromMemory,
};
