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
  'test/faults/kill.test.ts › "nor does it in the middle of model calls and of handing replies to a relay"';
const EVENTS =
  'test/faults/webhooks.test.ts › "kill -9 in the middle of deliveries loses no event, and repeats one only under the same id"';
const MADE =
  'test/routing/tools-again.test.ts › "a run that is done again" › "does not make again in other words what was begun when the server was killed, and its sender is told"';
const NEW_ADDRESS =
  'test/routing/at-sending.test.ts › "an answer that waits while its inbox gets another address" › "stays as it left first when %s"';
const PAUSED =
  'test/routing/pauses.test.ts › "an inbox that is paused" › "takes mail that waits, and works on it in its order once it goes on, however often the server was started"';
const DELETED =
  'test/api/delete-messages.test.ts › "a message that is deleted" › "is erased by the next process, should the first one end before"';
const PROGRAMS =
  'test/routing/mcp.test.ts › "a program of the operator\'s" › "has a folder for each account, where mcp.dir says, which goes with the account"';
const COMMITS = 'test/unit/group-commit.test.ts › "group commit" › "tells nobody anything before the commit"';

/**
 * Every place of `placesInSource`, and what shows that a kill there does no harm: one of the words above, or the test that is
 * named. Between two places nothing lasts, so that a kill at any await on the way is one after the first or before the second.
 */
export const KILL_POINTS: Record<Kind, Record<string, string[]>> = {
  commit: {
    [KILLED]: [
      "accounts/deletion.ts deleteAccount",
      "backup/schedule.ts askForBackup",
      "backup/schedule.ts makeBackupNow 2",
      "integrations/mcp-oauth.ts storeMcp",
      "integrations/needs-auth.ts tellNeedsAuth",
      "integrations/oauth-states.ts endTrip",
      "integrations/oauth-states.ts keepState",
      "integrations/store-provider.ts storeProvider",
      "integrations/tokens.ts keepTokens",
      "jobs/pool.ts claimJobs",
      "jobs/run-job.ts writeOutcome",
      "mail/outgoing.ts sendNow 2",
      "mail/returns-letter.ts mailReturnsNow 2",
      "messages/receive.ts receiveMail",
      "messages/receive.ts refuse",
      "messages/receive.ts takeNotification",
      "messages/retry.ts retryMessage",
      "retention/erase-account.ts eraseAccountNow 2",
      "retention/erase-account.ts sayFarewell",
      "retention/erase.ts eraseNow 2",
      "retention/purge.ts purgeNow",
      "jobs/shift.ts takeTurns",
      "jobs/shift.ts tidyUp",
      "retention/sweep.ts sweepFiles",
      "routing/call.ts acceptOnce",
      "routing/close.ts close",
      "routing/inbox-test.ts testInbox",
      "routing/inline.ts acceptInline",
      "routing/route.ts beginAnew",
      "routing/route.ts retryLater",
      "routing/tool-journal.ts beginCall",
      "routing/tool-journal.ts endCall",
      "serve.ts takeOver",
      "serve.ts takeOver 2",
      "serve.ts takeOver 3",
      "serve.ts takeOver 4",
      "serve.ts takeOver 5",
      "serve.ts takeOver 6",
      "serve.ts takeOver 7",
      "webhooks/deliver.ts deliverInTurns",
      "webhooks/fan-out.ts fanOutNow",
    ],
    [ALONE]: [
      "accounts/api-keys.ts addApiKey",
      "accounts/api-keys.ts revokeApiKey",
      "accounts/codes.ts verifyCode",
      "accounts/own-sessions.ts endOwnSession",
      "accounts/passwords.ts setPassword",
      "accounts/profile.ts patchProfile",
      "accounts/sessions.ts endSession",
      "accounts/setup.ts setUp",
      "accounts/sign-in.ts login",
      "accounts/sign-in.ts register",
      "admin/change-job.ts dropJob",
      "admin/change-job.ts moveUp",
      "admin/change-job.ts revive",
      "admin/change-job.ts revive 2",
      "admin/queue.ts hold",
      "admin/queue.ts release",
      "admin/users.ts patchUser",
      "connections/connections.ts createConnection",
      "connections/connections.ts deleteConnection",
      "connections/connections.ts patchConnection",
      "connections/test-connection.ts keep",
      "contacts/contacts.ts submitContact",
      "contexts/contexts.ts createContext",
      "contexts/contexts.ts deleteContext",
      "contexts/contexts.ts patchContext",
      "domains/domains.ts createDomain",
      "inboxes/cards.ts mailCard",
      "inboxes/delete-inbox.ts deleteInbox",
      "inboxes/inboxes.ts createInbox",
      "inboxes/inboxes.ts patchInbox",
      "inboxes/inboxes.ts rotateInbox",
      "inboxes/leave-domain.ts deleteDomain",
      "messages/delete.ts deleteConversation",
      "messages/delete.ts deleteMessage",
      "messages/delete.ts restoreConversation",
      "messages/delete.ts restoreMessage",
      "messages/tags.ts tagMessage",
      "recipes/recipes.ts applyRecipe",
      "routing/cancel.ts cancelMessage",
      "webhooks/deliveries.ts retryDelivery",
      "webhooks/endpoints.ts createEndpoint",
      "webhooks/endpoints.ts patchEndpoint",
      "webhooks/endpoints.ts revealSecret",
      "webhooks/endpoints.ts rotateSecret",
      "webhooks/test-endpoint.ts testEndpoint",
    ],
    [APART]: [
      "accounts/administrator.ts appointAdministrator",
      "accounts/api-keys.ts touchKey",
      "accounts/security-events.ts noteRefusal",
      "billing/notices.ts tellFull",
      "billing/routes.ts noted",
      "db/account-storage.ts recountStorage",
      "db/database.ts openDatabase",
      "db/database.ts openDatabase 2",
      "db/free-pages.ts giveBackPages",
      "db/free-pages.ts keepPagesMovable",
      "db/kept-clock.ts keepClock",
      "db/kept-position.ts noteEnd",
      "db/missing-bytes.ts noteMissing",
      "db/rate-limits.ts keepRateLimits",
      "db/triggers.ts ensureTriggers",
      "export/routes.ts noteExport",
      "http/auth.ts administrators",
      "jobs/clock.ts watchClock",
      "jobs/hasten.ts hastenThese",
      "jobs/worker.ts lookNowAndThen",
      "mail/dkim-start.ts completeDomains",
      "mail/mta-sts.ts keep",
      "messages/full-inbox.ts showOnce",
      "messages/stored-bytes.ts note",
      "retention/seal.ts seal",
      "serve.ts readiness",
      "smtp/peers.ts save",
    ],
    [AGAIN]: [
      "accounts/untold.ts sumUpNow",
      "backup/schedule.ts makeBackupNow",
      "backup/schedule.ts makeBackupNow 3",
      "billing/notices.ts mailNoticeNow",
      "domains/key-home.ts checkServiceKeysNow",
      "jobs/run-job.ts attempt",
      "jobs/run-job.ts attempt 2",
      "jobs/run-job.ts bury",
      "jobs/run-job.ts setAside",
      "jobs/run-job.ts returnLater",
      "mail/outgoing.ts waitForRoom",
      "mail/outgoing.ts sendNow",
      "mail/returns-letter.ts mailReturnsNow",
      "retention/erase-account.ts eraseAccountNow",
      "retention/erase.ts eraseNow",
      "retention/history.ts eraseAgain",
      "routing/route.ts endWithoutContent",
      "routing/route.ts endWithoutInbox",
      "routing/tell-failure.ts tellFailureNow",
    ],
    [BY_HAND]: [
      "accounts/accounts.ts createVerifiedUser",
      "accounts/accounts.ts createVerifiedUser 2",
      "accounts/accounts.ts setPlan",
      "accounts/api-keys.ts createApiKey",
      "accounts/api-keys.ts revokeApiKeyOf",
      "accounts/passwords.ts resetPassword",
      "admin/accounts/ways-in.ts resetUserPassword",
      "admin/accounts/ways-in.ts sendCodeTo",
      "cli/queue.ts withQueue",
      "domains/key-home.ts rotateKeys",
      "domains/key-home.ts settleNow",
      "mail/dkim-rotation.ts addNextKeys",
      "mail/suppressions.ts removeSuppression",
    ],
    [CODES]: [
      "accounts/codes.ts mailCodeNow",
      "accounts/codes.ts mailCodeNow 2",
      "accounts/codes.ts mailCodeNow 3",
      "accounts/codes.ts requestCode",
    ],
    [CANCELLED]: ["billing/cancel.ts closeCustomerNow"],
    [CUSTOMER]: ["billing/customers.ts createCustomer", "billing/customers.ts createCustomer 2"],
    [NEWS]: [
      "billing/catch-up.ts addPack",
      "billing/catch-up.ts catchUpNow",
      "billing/provider-events.ts takeNews",
      "billing/subscription.ts catchUp",
    ],
    [DOMAIN]: ["domains/check.ts checkNow", "domains/check.ts checkNow 2", "domains/check.ts verifyDomain"],
    [ORDER]: [
      "tls/keep.ts comeBack",
      "tls/keep.ts keepCertificateLater",
      "tls/keep.ts keepCertificateNow",
      "tls/keep.ts keepCertificateNow 2",
      "tls/keep.ts keepCertificateNow 3",
      "tls/keep.ts keepCertificateSoon",
    ],
    [KEY_FILE]: ["mail/dkim-start.ts addServiceKeys"],
    [NEW_ADDRESS]: ["mail/outgoing.ts reviewed"],
    [ONE_KEY]: ["db/master-key.ts openMasterKey"],
    [REST]: ["retention/erase-rest.ts eraseRestNow", "webhooks/delete-endpoint.ts deleteEndpoint"],
    [MAIL_FILES]: ["retention/sweep.ts move"],
    [BACKUP]: [
      "db/snapshot.ts forgetSignIns",
      "db/snapshot.ts forgetSignIns 2",
      "db/snapshot.ts gatherRanges",
      "db/snapshot.ts gatherRanges 2",
      "db/snapshot.ts gatherRanges 3",
      "db/snapshot.ts takeSnapshot",
    ],
    [RESTORE]: ["backup/restore.ts holdQueue"],
    [LOST_DATABASE]: ["db/bring-back.ts bringBack"],
    [PAUSED]: ["inboxes/resume.ts resumeInboxNow", "inboxes/resume.ts waitIfPaused"],
    [DELETED]: ["retention/deleted.ts eraseDeletedNow"],
    [COMMITS]: ["db/group-commit.ts commitBatch"],
    [WAY]: [
      "db/locks.ts lockPath",
      "db/open-sqlite.ts copyUnsynced",
      "db/patience.ts createPatience",
      "db/patience.ts createPatience 2",
      "db/shared-read.ts shareReads",
    ],
  },
  file: {
    [MAIL_FILES]: [
      "lib/segment-files.ts eraseIn",
      "lib/segment-files.ts makeFile",
      "lib/segment-files.ts makeFolder",
      "lib/segment-files.ts openIfThere",
      "lib/segment-files.ts writeAll",
      "lib/segment-files.ts writeWhole",
      "lib/segment-files.ts zeroOut",
      "lib/segments.ts openSegments",
      "lib/segments.ts openWriter",
    ],
    [BACKUP]: [
      "backup/archive.ts writeArchive",
      "backup/kept.ts ensureFolder",
      "backup/kept.ts keepNewest",
      "backup/write-backup.ts backupToFile",
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
    [ONE_KEY]: ["lib/secrets.ts createKeyFile"],
    [KEY_FILE]: ["mail/dkim-start.ts removeKeyFile"],
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
    ],
    // Removed before the commit that ends the job of the deletion, which is done again until then.
    [PROGRAMS]: [
      "connections/program-folders.ts folderRefusal",
      "connections/program-folders.ts removeProgramFolders",
    ],
    [BY_HAND]: [
      "cli/backup.ts backupCommand",
      "cli/demo.ts temporaryFolder",
      "doctor/machine-checks.ts checkSync",
    ],
  },
  effect: {
    [RELAY]: ["mail/outgoing.ts attempt", "mail/send-relay.ts relaySender"],
    [EVENTS]: ["webhooks/attempt.ts attempt"],
    [MADE]: ["routing/tool-call.ts outcomeOf", "routing/tool-call.ts write"],
    [KILLED]: ["integrations/oauth-wire.ts askServer"],
    [CANCELLED]: ["billing/cancel.ts endCustomer"],
    [CUSTOMER]: [
      "billing/checkout.ts openCheckout",
      "billing/checkout.ts openTopup",
      "billing/customers.ts closePages",
      "billing/customers.ts createCustomer",
      "billing/portal.ts openPortal",
      "billing/portal.ts planChangePage",
    ],
    [ORDER]: ["tls/authority.ts exchange"],
    [BY_HAND]: [
      "cli/demo-steps.ts call",
      "cli/demo-steps.ts deliver",
      "cli/healthcheck.ts healthcheckCommand",
      "cli/ollama.ts installedModels",
    ],
    [ASKS]: [
      "ai/llm.ts ask",
      "billing/catch-up.ts takeOverNews",
      "billing/catch-up.ts takeOverPages",
      "billing/customers.ts isDeleted",
      "billing/subscription.ts readStanding",
      "billing/top-ups.ts disputedOf",
      "billing/top-ups.ts pageOfPayment",
      "billing/top-ups.ts readPackOfSession",
      "connections/ping.ts ask",
      "doctor/web-checks.ts askElsewhere",
      "doctor/web-checks.ts checkBaseUrl",
      "doctor/web-checks.ts checkProvider",
      "integrations/mcp-oauth-probe.ts askHeaders",
      "mail/mta-sts.ts fetchPolicy",
    ],
    [WAY]: [
      "ai/mcp-calls.ts callTool",
      "ai/mcp-http.ts HttpWire",
      "ai/mcp-stdio.ts StdioWire",
      "billing/stripe.ts askStripe",
      "integrations/api-request.ts exchange",
      "integrations/mcp-oauth.ts boundTo",
      "lib/net.ts dial",
      "lib/poster.ts createPoster",
      "mail/send-direct.ts converse",
      "routing/ask-model.ts operatorFetch",
    ],
  },
};

/** The places of a kind that are listed so. */
export function listed(kind: Kind, way: string): string[] {
  return KILL_POINTS[kind][way] ?? [];
}
