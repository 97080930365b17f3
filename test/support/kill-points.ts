import type { Kind } from "./places.ts";

/**
 * `test/faults/kill-points.test.ts` kills before and after it, and fails where it does not come there. What others are given
 * on the way is counted there as well: the tools that were called, the mails that were handed over, the events that were told.
 */
export const KILLED = "killed";
/**
 * All that its request makes last in this database: a kill leaves nothing half, and whoever asked was told nothing.
 * `test/api/key-traces.test.ts` asks for each of them, and fails where a request makes another one, beside those that stand apart.
 */
export const ALONE = "alone";
/**
 * True by itself, whether what came before it and after it in its request or job lasts or not: what was counted, learned,
 * noted or looked at. That is by reading only: no test kills around it.
 */
export const APART = "apart";
/** Asked for by hand on a command line, which says when it is done; whoever hears nothing asks again. By reading only. */
const BY_HAND = "by hand";
/** Only asks. An answer that a kill keeps from being heard is asked for again, by whoever wanted it. By reading only. */
const ASKS = "asks";
/** The way itself on which those pass that stand here with their own places. */
const WAY = "way";

const AGAIN =
  'test/jobs/worker.test.ts › "failures" › "one in the middle of which the server was killed 15 times is given up, and not before"';
const RESTORE =
  'test/backup/killed.test.ts › "a restore that is killed at any step leaves the old content or the new, whole, and can be made again"';
const BACKUP =
  'test/backup/killed.test.ts › "a backup that is killed at any step leaves the older archive or the new one, whole, and the next leaves nothing else"';
const MAIL_FILES =
  'test/faults/mail-files-killed.test.ts › "mails are neither lost nor shared nor left behind by a kill between writing, committing, erasing and moving"';
const KEY_FILE =
  'test/mail/dkim-keys.test.ts › "a data folder of the first versions" › "that lost power before its key file was removed loses it at the next start"';
const REST =
  'test/api/cleared-away.test.ts › "what the job of a deletion had no time for is taken up again by the next hour"';
const ONE_WINS =
  'test/unit/durable-file.test.ts › "of several that make the same file at once one wins, and all are told what it says"';
const DRAFTS =
  'test/unit/durable-file.test.ts › "what killed processes have begun to write is removed, and nothing else"';
const ONE_KEY = 'test/unit/secrets.test.ts › "two first starts at once end with one key"';
const CODES =
  'test/api/auth-codes.test.ts › "a code that is asked for is sent after a restart, should the server stop at once"';
const NEWS =
  'test/api/billing-catch-up.test.ts › "what nobody told of is found within the hour:" › "what was paid while this server was away, for however long"';
const CANCELLED =
  'test/api/billing-deletion.test.ts › "a cancellation that was done but not written down is done again without harm"';
const CUSTOMER =
  'test/api/billing.test.ts › "checkout" › "two at once make one customer, and leave one page to pay on"';
const DOMAIN =
  'test/api/domains-checks.test.ts › "the job" › "goes on after a crash in the middle of it, in the next process"';
const ORDER = 'test/tls/binary.test.ts › "goes on with the same order after kill -9 in the middle of it"';
const LOST_DATABASE =
  'test/faults/database.test.ts › "no new database is begun beside what belongs to a lost one"';
const RESERVE = 'test/faults/disk-full.test.ts › "half a reserve is not left in the way"';
const RELAY =
  'test/faults/kill.test.ts › "kill -9 in the middle of model calls and of handing replies to a relay loses no mail, doubles none and charges each once"';
const EVENTS =
  'test/faults/webhooks.test.ts › "kill -9 in the middle of deliveries loses no event, and repeats one only under the same id"';
const MADE =
  'test/routing/tools-again.test.ts › "a run that is done again" › "does not make again in other words what was begun when the server was killed, and its sender is told"';
const ALLOWED = 'test/approvals/once.test.ts › "a yes whose run is done again after a kill" › "%s"';
const NEW_ADDRESS =
  'test/routing/at-sending.test.ts › "an answer that waits while its inbox gets another address" › "stays as it left first when %s"';
const PAUSED =
  'test/routing/pauses.test.ts › "an inbox that is paused" › "takes mail that waits, and works on it in its order once it goes on, however often the server was started"';
const DELETED =
  'test/api/delete-messages.test.ts › "a message that is deleted" › "is erased by the next process, should the first one end before"';
const PROGRAMS =
  'test/routing/mcp.test.ts › "a program of the operator\'s" › "has a folder for each account, where mcp.dir says, which goes with the account"';
const INDEXED =
  'test/faults/search.test.ts › "kill -9 between the end of a message and its indexing leaves none that cannot be found, and none twice"';
const COSTS =
  'test/faults/costs.test.ts › "kill -9 between setting money aside and the answer gives it back; what was answered counts, each time and once"';
const HELD_CREDITS =
  'test/faults/held-credits.test.ts › "kill -9 while mail waits for a credit that is held for others loses none of it, and charges each once"';
const COMMITS = 'test/unit/group-commit.test.ts › "group commit" › "tells nobody anything before the commit"';

/**
 * Every place of `placesInSource`, and what shows that a kill there does no harm: one of the words above, or the test that is
 * named. Between two places nothing lasts, so that a kill at any await on the way is one after the first or before the second.
 */
export const KILL_POINTS: Record<Kind, Record<string, string[]>> = {
  commit: {
    [INDEXED]: ["resources/messages/search/keep-indexed.ts store"],
    [HELD_CREDITS]: ["inbound/credit.ts reserveOwed"],
    [COSTS]: ["resources/billing/budgets.ts reserveCost", "resources/billing/budgets.ts settleCost"],
    [KILLED]: [
      "resources/accounts/deletion.ts removeAccount",
      "backup/schedule.ts askForBackup",
      "backup/schedule.ts makeBackupNow 2",
      "resources/integrations/mcp-oauth.ts storeMcp",
      "resources/integrations/needs-auth.ts tellNeedsAuth",
      "resources/integrations/oauth-states.ts endTrip",
      "resources/integrations/oauth-states.ts keepState",
      "resources/integrations/store-provider.ts storeProvider",
      "resources/integrations/tokens.ts keepTokens",
      "jobs/pool.ts claimJobs",
      "jobs/run-job.ts writeOutcome 2",
      "mail/sending/outgoing.ts sendNow 2",
      "mail/sending/returns-letter.ts mailReturnsNow 2",
      "inbound/receive.ts receiveMail",
      "inbound/receive.ts refuse",
      "inbound/receive.ts takeNotification",
      "resources/messages/retry.ts retryMessage",
      "resources/schedules/run-due.ts runScheduleNow",
      "operation/retention/erase-account.ts eraseAccountNow 2",
      "operation/retention/erase-account.ts sayFarewell",
      "operation/retention/erase.ts eraseNow 2",
      "operation/retention/purge.ts purgeNow",
      "jobs/shift.ts takeTurns",
      "jobs/shift.ts tidyUp",
      "operation/retention/tidy-segments.ts sweepFiles",
      "pipeline/call.ts acceptOnce",
      "pipeline/close.ts close",
      "pipeline/end-by-rule.ts endByRule",
      "pipeline/inbox-test.ts testInbox",
      "pipeline/inline.ts acceptInline",
      "pipeline/forward.ts settleForwardNow",
      "pipeline/rules.ts answerTo",
      "pipeline/rules.ts judgeByRules",
      "pipeline/answer-request.ts refused",
      "resources/approvals/approvals.ts approve",
      "resources/approvals/approvals.ts refuse",
      "pipeline/replay.ts close",
      "pipeline/replay.ts replayNow 2",
      "resources/replays/replays.ts createReplay",
      "resources/messages/change.ts changeMessage",
      "resources/test-runs/test-runs.ts createTestRun",
      "pipeline/run.ts beginAnew",
      "pipeline/run.ts hasWaited",
      "pipeline/run.ts waitByRule 2",
      "pipeline/ask-again-later.ts retryLater",
      "pipeline/tool-journal.ts beginCall",
      "pipeline/tool-journal.ts endCall",
      "serve.ts takeOver",
      "serve.ts takeOver 2",
      "serve.ts takeOver 3",
      "serve.ts takeOver 4",
      "serve.ts takeOver 5",
      "serve.ts takeOver 6",
      "serve.ts takeOver 7",
      "resources/webhooks/endpoint-turns.ts deliverInTurns",
      "resources/webhooks/fan-out.ts fanOutNow",
    ],
    [ALONE]: [
      "resources/accounts/api-keys.ts addApiKey",
      "resources/accounts/api-keys.ts revokeApiKey",
      "resources/accounts/codes.ts verifyCode 2",
      "resources/accounts/own-sessions.ts endOwnSession",
      "resources/accounts/passwords.ts setPassword",
      "resources/accounts/profile.ts patchProfile",
      "resources/accounts/sessions.ts endSession",
      "resources/accounts/setup.ts setUp",
      "resources/accounts/password-sign-in.ts login",
      "resources/accounts/password-sign-in.ts register",
      "operation/admin/change-job.ts dropJob",
      "operation/admin/change-job.ts moveUp",
      "operation/revive.ts retryInPlace",
      "operation/revive.ts mailAgain",
      "operation/admin/queue.ts hold",
      "operation/admin/queue.ts release",
      "operation/admin/users.ts patchUser",
      "resources/connections/connections.ts createConnection",
      "resources/connections/connections.ts deleteConnection",
      "resources/connections/connections.ts patchConnection",
      "resources/connections/test-connection.ts keep",
      "resources/contacts/contacts.ts submitContact",
      "resources/contexts/contexts.ts createContext",
      "resources/contexts/contexts.ts deleteContext",
      "resources/contexts/contexts.ts patchContext",
      "resources/contexts/versions.ts deleteVersion",
      "resources/contexts/versions.ts restoreVersion",
      "resources/domains/domains.ts createDomain",
      "resources/inboxes/cards.ts mailCard",
      "resources/inboxes/delete-inbox.ts deleteInbox",
      "resources/inboxes/inboxes.ts createInbox",
      "resources/inboxes/inboxes.ts patchInbox",
      "resources/inboxes/inboxes.ts rotateInbox",
      "resources/inboxes/leave-domain.ts deleteDomain",
      "resources/messages/retry.ts mailAnswerAgain",
      "resources/messages/delete.ts deleteConversation",
      "resources/messages/delete.ts deleteMessage",
      "resources/messages/delete.ts restoreMessage",
      "resources/replays/replays.ts deleteReplay",
      "resources/test-runs/test-runs.ts deleteTestRun",
      "resources/recipes/recipes.ts applyRecipe",
      "resources/schedules/run-due.ts runScheduleAtOnce",
      "resources/schedules/schedules.ts createSchedule",
      "resources/schedules/schedules.ts deleteSchedule",
      "resources/schedules/schedules.ts patchSchedule",
      "pipeline/cancel.ts cancelMessage",
      "resources/webhooks/deliveries.ts retryDelivery",
      "resources/webhooks/endpoints.ts createEndpoint",
      "resources/webhooks/endpoints.ts patchEndpoint",
      "resources/webhooks/endpoints.ts revealSecret",
      "resources/webhooks/endpoints.ts rotateSecret",
      "resources/webhooks/test-endpoint.ts testEndpoint",
    ],
    [APART]: [
      "jobs/run-job.ts writeOutcome",
      "resources/accounts/codes.ts verifyCode",
      "db/look-through.ts areMadeAnew",
      "db/look-through.ts isWrittenAnew",
      "db/look-through.ts isWrittenAnew 2",
      "pipeline/ask-again-later.ts askAgainLater",
      "pipeline/run.ts waitByRule",
      "resources/messages/retry.ts goOnNow",
      "resources/accounts/administrator.ts appointAdministrator",
      "resources/accounts/api-keys.ts touchKey",
      "resources/accounts/codes.ts voidCode",
      "resources/accounts/security-events.ts noteRefusal",
      "resources/billing/notices.ts tellFull",
      "resources/connections/note-use.ts noteUse",
      "resources/billing/routes.ts noted",
      "db/account-storage.ts recountStorage",
      "db/database.ts openDatabase",
      "db/database.ts openDatabase 2",
      "db/free-pages.ts giveBackPages",
      "db/free-pages.ts keepPagesMovable",
      "db/kept-clock.ts keepClock",
      "db/kept-position.ts noteEnd",
      "db/missing-bytes.ts markMissingBytes",
      "db/rate-limits.ts keepRateLimits",
      "resources/billing/kept-costs.ts keepCosts",
      "db/text-index.ts ensureTextIndex",
      "db/text-index.ts forgetSetAside",
      "db/text-index.ts keepTextIndex",
      "db/text-index.ts setAside",
      "db/text-index.ts setAside 2",
      "db/text-index.ts takeOutTextIndex",
      "resources/messages/search/keep-indexed.ts queueSome",
      "db/triggers.ts ensureTriggers",
      "operation/export/routes.ts noteExport",
      "http/auth.ts administrators",
      "jobs/clock.ts watchClock",
      "jobs/hasten.ts hastenThese",
      "jobs/mend.ts mendHourly",
      "jobs/worker.ts lookNowAndThen",
      "mail/writing/dkim-start.ts completeDomains",
      "mail/sending/mta-sts.ts keep",
      "inbound/full-inbox.ts showOnce",
      "resources/messages/delete.ts markInSteps",
      "resources/messages/stored-bytes.ts note",
      "operation/retention/seal.ts seal",
      "pipeline/inline.ts syncCommits",
      "serve.ts readiness",
      "smtp/peers.ts save",
    ],
    [AGAIN]: [
      "pipeline/replay.ts replayNow",
      "resources/accounts/untold.ts sumUpNow",
      "backup/schedule.ts makeBackupNow",
      "backup/schedule.ts makeBackupNow 3",
      "resources/billing/notices.ts leadLane",
      "resources/billing/notices.ts mailNoticeNow",
      "resources/billing/notices.ts mailNoticeNow 2",
      "resources/billing/notices.ts mailNoticeNow 3",
      "resources/domains/key-home.ts checkServiceKeysNow",
      "jobs/run-job.ts attempt",
      "jobs/run-job.ts attempt 2",
      "jobs/run-job.ts endForGood",
      "jobs/run-job.ts returnLater",
      "mail/sending/outgoing.ts waitForRoom",
      "mail/sending/outgoing.ts endUnreadable",
      "mail/sending/outgoing.ts sendNow",
      "mail/sending/returns-letter.ts mailReturnsNow",
      "resources/schedules/lost-answer.ts settleLostNow",
      "operation/retention/erase-account.ts eraseAccountNow",
      "operation/retention/erase.ts eraseNow",
      "operation/retention/history.ts eraseAgain",
      "pipeline/run.ts endWithoutContent",
      "pipeline/end-without-inbox.ts endWithoutInbox",
      "pipeline/end-without-key.ts endWithoutKey",
      "pipeline/tell-failure.ts tellFailureNow",
    ],
    [BY_HAND]: [
      "resources/accounts/accounts.ts createVerifiedUser",
      "resources/accounts/accounts.ts createVerifiedUser 2",
      "resources/accounts/accounts.ts setPlan",
      "resources/accounts/api-keys.ts createApiKey",
      "resources/accounts/api-keys.ts revokeApiKeyOf",
      "resources/accounts/passwords.ts resetPassword",
      "operation/admin/accounts/ways-in.ts resetUserPassword",
      "operation/admin/accounts/ways-in.ts sendCodeTo",
      "cli/queue.ts withQueue",
      "resources/domains/key-home.ts rotateKeys",
      "resources/domains/key-home.ts settleNow",
      "mail/writing/dkim-rotation.ts addNextKeys",
      "mail/sending/suppressions.ts removeSuppression",
    ],
    [CODES]: [
      "resources/accounts/codes.ts mailCodeNow",
      "resources/accounts/codes.ts mailCodeNow 2",
      "resources/accounts/codes.ts mailCodeNow 3",
      "resources/accounts/codes.ts requestCode",
    ],
    [CANCELLED]: ["resources/billing/cancel.ts closeCustomerNow"],
    [CUSTOMER]: [
      "resources/billing/customers.ts createCustomer",
      "resources/billing/customers.ts createCustomer 2",
    ],
    [NEWS]: [
      "resources/billing/catch-up.ts addPack",
      "resources/billing/catch-up.ts catchUpNow",
      "resources/billing/provider-events.ts takeNews",
      "resources/billing/subscription.ts catchUp",
    ],
    [DOMAIN]: [
      "resources/domains/check.ts checkNow",
      "resources/domains/check.ts checkNow 2",
      "resources/domains/check.ts verifyDomain",
    ],
    [ORDER]: [
      "tls/keep.ts comeBack",
      "tls/keep.ts keepCertificateLater",
      "tls/keep.ts keepCertificateNow",
      "tls/keep.ts keepCertificateNow 2",
      "tls/keep.ts keepCertificateNow 3",
      "tls/keep.ts keepCertificateSoon",
    ],
    [KEY_FILE]: ["mail/writing/dkim-start.ts addServiceKeys"],
    [NEW_ADDRESS]: ["mail/sending/outgoing.ts reviewed"],
    [ONE_KEY]: ["db/master-key.ts openMasterKey"],
    [REST]: [
      "operation/retention/erase-rest.ts eraseRestNow",
      "resources/webhooks/delete-endpoint.ts deleteEndpoint",
    ],
    [MAIL_FILES]: ["operation/retention/tidy-segments.ts move"],
    [BACKUP]: [
      "db/snapshot.ts forgetSignIns",
      "db/snapshot.ts forgetSignIns 2",
      "db/snapshot.ts gatherRanges",
      "db/snapshot.ts gatherRanges 2",
      "db/snapshot.ts gatherRanges 3",
      "db/snapshot.ts mendSnapshot",
      "db/snapshot.ts takeSnapshot",
      "db/snapshot.ts takeSnapshot 2",
    ],
    [RESTORE]: ["backup/restore.ts holdQueue"],
    [LOST_DATABASE]: ["db/bring-back.ts bringBack"],
    [PAUSED]: [
      "resources/inboxes/resume.ts resumeInboxNow",
      "resources/inboxes/resume.ts resumeInboxNow 2",
      "resources/inboxes/resume.ts waitIfPaused",
    ],
    [DELETED]: ["operation/retention/deleted.ts eraseDeletedNow"],
    [COMMITS]: ["db/group-commit.ts commitBatch"],
    [WAY]: [
      "db/locks.ts lockPath",
      "db/long-bytes.ts afterLongBytes",
      "db/long-bytes.ts afterLongBytes 2",
      "db/open-sqlite.ts copyUnsynced",
      "db/patience.ts createPatience",
      "db/patience.ts createPatience 2",
      "db/shared-read.ts shareReads",
    ],
  },
  file: {
    [MAIL_FILES]: [
      "lib/segment-files.ts eraseIn",
      "lib/segment-files.ts freeIn",
      "lib/segment-files.ts makeFile",
      "lib/segment-files.ts makeFolder",
      "lib/segment-files.ts openIfThere",
      "lib/segment-files.ts writeAll",
      "lib/segment-files.ts writeWhole",
      "lib/segments.ts begin",
      "lib/segments.ts cutOff",
      "lib/segments.ts openSegments",
      "lib/segments.ts openWriter",
    ],
    [BACKUP]: [
      "backup/archive.ts writeArchive",
      "backup/kept.ts ensureFolder",
      "backup/kept.ts keepNewest",
      "backup/write-backup.ts backupToFile",
      "db/snapshot.ts takeSnapshot",
      "backup/write-backup.ts draftFolder",
      "backup/write-backup.ts removeAbandoned",
      "backup/write-backup.ts sync",
      "lib/durable-file.ts syncFolder",
    ],
    [RESTORE]: [
      "backup/read-archive.ts extractOne",
      "backup/restore.ts beginSegment",
      "backup/restore.ts refuseOtherDisks",
      "backup/restore.ts unpack",
      "backup/swap.ts exchange",
      "backup/swap.ts finishExchange",
      "backup/swap.ts move",
      "backup/swap.ts syncPath",
      "lib/durable-file.ts replaceFile",
      "lib/durable-file.ts writeSynced",
    ],
    [ONE_WINS]: ["lib/durable-file.ts writeOnce"],
    [DRAFTS]: ["lib/durable-file.ts removeDrafts"],
    [ONE_KEY]: ["lib/secrets.ts createKeyFile", "lib/secrets.ts loadMasterKey"],
    [KEY_FILE]: ["mail/writing/dkim-start.ts removeKeyFile"],
    [ORDER]: [
      "tls/certificate.ts selfSigned",
      "tls/store.ts accountKey",
      "tls/store.ts forgetOrder",
      "tls/store.ts storeCertificate",
      "tls/store.ts storeOrder",
    ],
    [LOST_DATABASE]: ["db/bring-back.ts bringBack"],
    [RESERVE]: ["db/reserve.ts fill", "db/reserve.ts keepReserve"],
    [APART]: [
      "db/database.ts openDatabase",
      "db/kept-position.ts save",
      "db/locks.ts lockEmptied",
      "db/locks.ts lockFile",
      "db/lost-commits.ts addNote",
      "lib/cached-pages.ts forgetCached",
      "lib/start-faults.ts isOnReadOnlyDisk",
      "lib/worker-says.ts standApart",
    ],
    // Removed before the commit that ends the job of the deletion, which is done again until then.
    [PROGRAMS]: [
      "resources/connections/program-folders.ts folderRefusal",
      "resources/connections/program-folders.ts removeProgramFolders",
    ],
    [BY_HAND]: [
      "cli/demo.ts temporaryFolder",
      "cli/restore.ts archiveAt",
      "cli/options.ts printText",
      "cli/options.ts standardOutput",
      "operation/doctor/machine-checks.ts checkSync",
    ],
  },
  effect: {
    [RELAY]: ["mail/sending/outgoing.ts attempt", "mail/sending/send-relay.ts relaySender"],
    [EVENTS]: ["resources/webhooks/post-event.ts attempt"],
    [MADE]: ["pipeline/tool-call.ts outcomeOf", "pipeline/tool-call.ts write"],
    [KILLED]: ["resources/integrations/oauth-wire.ts askServer"],
    [ALLOWED]: ["pipeline/approved-call.ts makeOnce"],
    [CANCELLED]: ["resources/billing/cancel.ts endCustomer"],
    [CUSTOMER]: [
      "resources/billing/checkout.ts openCheckout",
      "resources/billing/checkout.ts openTopup",
      "resources/billing/customers.ts closePages",
      "resources/billing/customers.ts createCustomer",
      "resources/billing/portal.ts openPortal",
      "resources/billing/portal.ts planChangePage",
    ],
    [ORDER]: ["tls/authority.ts exchange"],
    [BY_HAND]: [
      "cli/demo-steps.ts call",
      "cli/demo-steps.ts deliver",
      "cli/healthcheck.ts healthcheckCommand",
      "cli/ollama.ts installedModels",
    ],
    [ASKS]: [
      "operation/doctor/web-checks.ts checkSpamFilter",
      "ai/llm.ts ask",
      "resources/billing/catch-up.ts takeOverNews",
      "resources/billing/catch-up.ts takeOverPages",
      "resources/billing/customers.ts isDeleted",
      "resources/billing/subscription.ts readStanding",
      "resources/billing/top-ups.ts disputedOf",
      "resources/billing/top-ups.ts pageOfPayment",
      "resources/billing/top-ups.ts readPackOfSession",
      "resources/connections/ping.ts ask",
      "operation/doctor/web-checks.ts askElsewhere",
      "operation/doctor/web-checks.ts checkBaseUrl",
      "operation/doctor/web-checks.ts checkProvider",
      "resources/integrations/mcp-oauth-probe.ts askHeaders",
      "mail/sending/mta-sts.ts fetchPolicy",
    ],
    [WAY]: [
      "ai/mcp-calls.ts callTool",
      "ai/mcp-http.ts HttpWire",
      "ai/mcp-stdio.ts StdioWire",
      "resources/billing/stripe.ts askStripe",
      "resources/integrations/api-request.ts exchange",
      "resources/integrations/mcp-oauth.ts boundTo",
      "net/guarded-fetch.ts dial",
      "net/poster.ts createPoster",
      "mail/sending/send-direct.ts converse",
      "inbound/spam-filter.ts ask",
      "pipeline/ask-within-budget.ts operatorFetch",
    ],
  },
};

/** The places of a kind that are listed so. */
export function listed(kind: Kind, way: string): string[] {
  return KILL_POINTS[kind][way] ?? [];
}
