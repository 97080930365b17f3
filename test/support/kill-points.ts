import { join } from "node:path";
import { Glob } from "bun";

const SRC = join(import.meta.dir, "../../src");

/** `test/faults/kill-points.test.ts` kills before and after it, and fails where it does not come there. */
export const KILLED = "killed";
/** All that its request or job makes last is this one commit: a kill leaves nothing half, and nobody was told. */
export const ALONE = "alone";

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

/**
 * Every place at which an operation makes something last, and how it is shown that a kill there does no harm: by one of
 * the two words above, or by the test that is named. A place is a commit, by its file, its function and its number there,
 * or the changes that a function makes to files. Between two of them nothing lasts, so that a kill at any await on the way
 * is one after the first or before the second.
 */
export const KILL_POINTS: Record<string, Record<string, string[]>> = {
  accept: {
    [KILLED]: [
      "messages/receive.ts receiveMail",
      "messages/receive.ts takeNotification",
      "messages/receive.ts refuse",
      "messages/retry.ts retryMessage",
      "routing/call.ts acceptOnce",
      "routing/inbox-test.ts testInbox",
      "routing/inline.ts acceptInline",
    ],
    [ALONE]: ["messages/full-inbox.ts tellOfFull", "messages/stored-bytes.ts note"],
    [MAIL_FILES]: [
      "lib/segment-files.ts makeFile",
      "lib/segment-files.ts writeAll",
      "lib/segments.ts openSegments",
      "lib/segments.ts openWriter",
    ],
  },
  run: {
    [KILLED]: [
      "jobs/pool.ts claimJobs",
      "jobs/run-job.ts writeOutcome",
      "routing/route.ts beginAnew",
      "routing/route.ts retryLater",
      "routing/tool-journal.ts beginCall",
      "routing/tool-journal.ts endCall",
    ],
    [ALONE]: [
      "jobs/clock.ts watchClock",
      "jobs/run-job.ts attempt",
      "jobs/run-job.ts attempt 2",
      "jobs/run-job.ts bury",
      "jobs/run-job.ts setAside",
      "jobs/run-job.ts waitForStorage",
    ],
  },
  close: {
    [KILLED]: ["routing/close.ts closeRun"],
    [ALONE]: [
      "routing/route.ts endWithoutContent",
      "routing/route.ts endWithoutInbox",
      "routing/tell-failure.ts tellFailureNow",
    ],
  },
  send: {
    [KILLED]: ["mail/outgoing.ts sendNow 2", "mail/returns-letter.ts mailReturnsNow 2"],
    [ALONE]: [
      "mail/dkim-rotation.ts addNextKeys",
      "mail/dkim-start.ts completeDomains",
      "mail/outgoing.ts sendNow",
      "mail/returns-letter.ts mailReturnsNow",
      "mail/suppressions.ts removeSuppression",
    ],
    [KEY_FILE]: ["mail/dkim-start.ts addServiceKeys"],
  },
  deliver: {
    [KILLED]: ["webhooks/deliver.ts deliverInTurns", "webhooks/fan-out.ts fanOutNow"],
    [ALONE]: [
      "webhooks/deliveries.ts replayFailed",
      "webhooks/deliveries.ts retryDelivery",
      "webhooks/endpoints.ts createEndpoint",
      "webhooks/endpoints.ts patchEndpoint",
      "webhooks/endpoints.ts rotateSecret",
      "webhooks/test-endpoint.ts testEndpoint",
    ],
  },
  purge: {
    [KILLED]: ["retention/purge.ts purgeNow", "retention/shift.ts takeTurns", "retention/shift.ts tidyUp"],
  },
  erase: {
    [KILLED]: [
      "accounts/deletion.ts deleteAccount",
      "retention/erase-account.ts eraseAccountNow",
      "retention/erase-account.ts sayFarewell",
      "retention/erase.ts eraseNow 2",
      "retention/sweep.ts sweepFiles",
    ],
    [REST]: ["retention/erase-rest.ts eraseRestNow", "webhooks/delete-endpoint.ts deleteEndpoint"],
    [ALONE]: ["retention/erase.ts eraseNow", "retention/history.ts eraseAgain"],
    [MAIL_FILES]: ["lib/segment-files.ts eraseIn", "lib/segment-files.ts zeroOut", "retention/sweep.ts move"],
  },
  backup: {
    [KILLED]: ["backup/schedule.ts askForBackup", "backup/schedule.ts makeBackupNow 2"],
    [ALONE]: ["backup/schedule.ts makeBackupNow", "backup/schedule.ts makeBackupNow 3"],
    [BACKUP]: [
      "backup/kept.ts ensureFolder",
      "backup/kept.ts keepNewest",
      "backup/write-backup.ts backupToFile",
      "backup/write-backup.ts draftFolder",
      "backup/write-backup.ts removeAbandoned",
      "backup/write-backup.ts sync",
      "lib/durable-file.ts syncFolder",
    ],
  },
  restore: {
    [RESTORE]: [
      "backup/read-archive.ts extractOne",
      "backup/restore.ts holdQueue",
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
  },
  tokens: {
    [KILLED]: ["integrations/needs-auth.ts tellNeedsAuth", "integrations/tokens.ts keepTokens"],
    [ALONE]: [
      "integrations/mcp-oauth.ts storeMcp",
      "integrations/oauth-states.ts endTrip",
      "integrations/oauth-states.ts keepState",
      "integrations/store-provider.ts storeProvider",
    ],
  },
};

/** A commit that is asked for in the sources. */
interface Commit {
  place: string;
  /** `messages/receive.ts:68`. */
  line: string;
}

const COMMITS =
  /^(?:messages|routing|jobs|retention|backup|webhooks|integrations|mail)\/|^accounts\/deletion\.ts$/;
const COMMIT =
  /(?<!function )(?:\b(?:app|database)\.(?:write|insist)|\b(?:writeOutcome|acceptInline))(?:<[^>]*>)?\(/g;
const FILES = /^backup\/|^lib\/(?:segments|segment-files|durable-file)\.ts$/;
const CHANGE =
  /(?<!function )\b(?:rename|link|unlink|rm|mkdir|mkdtemp|writeWhole|replaceFile)\(|\.(?:sync|datasync|writev)\(/g;
const FUNCTION = /^(?:export )?(?:async )?function\*? (\w+)/gm;

/** Every commit of the operations, in the order of the sources. */
export async function commitsInSource(): Promise<Commit[]> {
  const found = await inSources(COMMITS, COMMIT, (file, before) => {
    const name = functionAt(before);
    const earlier = [...before.slice(before.lastIndexOf(`function ${name}`)).matchAll(COMMIT)].length;
    const place = `${file} ${name}${earlier === 0 ? "" : ` ${earlier + 1}`}`;
    return { place, line: `${file}:${before.split("\n").length}` };
  });
  return found;
}

/** Every function of the operations that changes files. */
export async function changesOfFiles(): Promise<string[]> {
  return [...new Set(await inSources(FILES, CHANGE, (file, before) => `${file} ${functionAt(before)}`))];
}

/** The commits that the innermost frames of a stack ask for; those that only wait for one say so. */
export function linesOf(stack: string): string[] {
  const frames = stack.split("\n").filter((frame) => !frame.includes("at async "));
  return frames.flatMap((frame) => /\/src\/([\w./-]+:\d+):\d+\)?$/.exec(frame)?.[1] ?? []);
}

async function inSources<Found>(
  files: RegExp,
  pattern: RegExp,
  find: (file: string, before: string) => Found,
): Promise<Found[]> {
  const names = [...new Glob("**/*.ts").scanSync(SRC)].filter((name) => files.test(name)).sort();
  const found = names.map(async (name) => {
    const source = await Bun.file(join(SRC, name)).text();
    return [...source.matchAll(pattern)].map(({ index }) => find(name, source.slice(0, index)));
  });
  return (await Promise.all(found)).flat();
}

function functionAt(before: string): string {
  return [...before.matchAll(FUNCTION)].at(-1)?.[1] ?? "";
}
