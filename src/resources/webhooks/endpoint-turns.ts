import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { WebhookEndpointRow } from "../../db/schema.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { attemptOnce, openForAttempts } from "./post-event.ts";
import {
  claimDue,
  type Claim,
  earliestDue,
  failInterrupted,
  giveBack,
  isExhausted,
  keepOnTheirWay,
  type Made,
  recordOutcomes,
} from "./due-deliveries.ts";
import { countEndings, type Ending, type Notices, noticesFor } from "./disable.ts";
import { attemptLater } from "./fan-out.ts";
import { failSomePending } from "./pending.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/** Attempts at one endpoint at the same time. */
const LANES = 5;
/** Deliveries that an endpoint that answers fast is given in one turn; one that does not gets as many as there are lanes. */
const MAX_TURN = 200;
/** Bytes of bodies under way to one endpoint: whoever makes long ones must not fill the memory with them. */
const MAX_BYTES = 2_000_000;
/** The factor by which the next turn claims more, after one in which all was answered in time. */
const RAMP = 4;
/** How long a turn waits for its attempts before it writes down what is there, and looks for what else is due. */
const TURN_MS = 1_000;
/**
 * How long the outcomes of one endpoint wait at most for those of others, so that one commit writes all of them down.
 */
const SHARED_COMMIT_MS = 10;
/** After this time the job starts anew, well before its lease ends. */
const RUN_SECONDS = 300;
/** How long deliveries wait that were not tried for want of file handles: that costs them no attempt. */
const OWN_FAULT_SECONDS = 15;
/**
 * When the next job of an endpoint begins after one was given up. If a delivery is what makes the server die, it does
 * so less often.
 */
const PAUSE_SECONDS = HOUR_SECONDS;

/** The deliveries that a job has claimed, by how far they are. */
interface Line {
  /** Claimed, but not begun. */
  waiting: Claim[];
  in_flight: Set<Claim>;
  /** Made, but not written down. */
  made: Made[];
  /** How many to claim next. */
  size: number;
  /** Set if this machine has no file handles to try one, and would fail with the next. */
  is_stuck: boolean;
  make: (claim: Claim) => Promise<Made["outcome"]>;
  /** Called when no attempt is on its way any more. */
  idle: () => void;
}

/**
 * Makes the attempts that are due at one endpoint until there are none, turn by turn: a transaction stores the outcomes
 * of the last attempts and counts the next ones, which are made after it. The last transaction ends the job, or
 * postpones it until the next attempt is due.
 */
export async function deliverNow(app: App, job: Job<"deliver_webhooks">, signal: AbortSignal): Promise<void> {
  under_way += 1;
  try {
    await deliverInTurns(app, job, signal);
  } finally {
    under_way -= 1;
    endWaitIfAllAreReady();
  }
}

async function deliverInTurns(app: App, job: Job<"deliver_webhooks">, signal: AbortSignal): Promise<void> {
  const { endpoint_id } = job.payload;
  const until = app.steadyNow() + RUN_SECONDS;
  const line: Line = {
    waiting: [],
    in_flight: new Set(),
    made: [],
    size: LANES,
    is_stuck: false,
    make: () => Promise.reject(new Error("No delivery was claimed")),
    idle: () => undefined,
  };
  for (;;) {
    if (line.made.length > 0) await sharedCommit();
    const may_claim =
      !line.is_stuck && !signal.aborted && app.worker?.isStopping() !== true && app.steadyNow() < until;
    // What is still on its way when the server stops is made again later.
    const in_flight = signal.aborted ? [] : [...line.in_flight];
    const hand = { ...line, may_claim, in_flight };
    line.waiting = [];
    line.made = [];
    const notices = await noticesFor(app, endpoint_id, endingsOf(app, hand.made));
    const turn = await writeOutcome(app, signal, (tx) => takeTurn(app, tx, { job, hand, notices }));
    if (turn === null) return tellStuck(app, job, line);
    line.waiting = turn.claims;
    if (turn.claims.length > 0) line.make = attemptsAt(app, turn.endpoint);
    const claimed = new Set(turn.claims.map(({ id }) => id));
    const before = [...line.in_flight, ...line.made.map(({ claim }) => claim)];
    for (const claim of before) claim.superseded ||= claimed.has(claim.id);
    const isMoreDue = async () => ((await earliestDue(app.db, endpoint_id)) ?? Infinity) <= app.now();
    await attemptAll(line, signal, isMoreDue);
  }
}

function tellStuck(app: App, { payload }: Job<"deliver_webhooks">, { is_stuck }: Line): void {
  if (!is_stuck) return;
  const { endpoint_id } = payload;
  const said = { endpoint_id, seconds: OWN_FAULT_SECONDS };
  app.log.warn(said, "deliveries wait: this server has too many files and connections open");
}

/** The wait in which the outcomes of several endpoints come together for one commit. */
interface CommitWait {
  ended: PromiseWithResolvers<void>;
  timer: ReturnType<typeof setTimeout>;
  /** How many endpoints wait. */
  ready: number;
}

let under_way = 0;
let wait: CommitWait | undefined;

/** Resolves when it is time to write down, together with other endpoints. */
function sharedCommit(): Promise<void> {
  wait ??= { ended: Promise.withResolvers(), timer: setTimeout(endWait, SHARED_COMMIT_MS), ready: 0 };
  const { promise } = wait.ended;
  wait.ready += 1;
  endWaitIfAllAreReady();
  return promise;
}

function endWaitIfAllAreReady(): void {
  if (wait && wait.ready >= under_way) endWait();
}

function endWait(): void {
  clearTimeout(wait?.timer);
  wait?.ended.resolve();
  wait = undefined;
}

/**
 * Plans the next job of an endpoint whose job was given up: only deliveries without an attempt left end with that
 * job.
 */
export async function giveUpDelivering(app: App, tx: Db, job: Job<"deliver_webhooks">): Promise<void> {
  const [endpoint] = await endpointById(tx, { id: job.payload.endpoint_id });
  if (!endpoint) return;
  await failInterrupted(app, tx, endpoint.id);
  const next_at = await earliestDue(tx, endpoint.id);
  if (next_at !== null) await attemptLater(app, tx, endpoint, Math.max(next_at, app.after(PAUSE_SECONDS)));
}

/** Returns what makes an attempt. The secrets are opened once for all of them. */
function attemptsAt(app: App, endpoint: WebhookEndpointRow): Line["make"] {
  const secrets = openForAttempts(app, endpoint);
  const is_only = app.config.webhooks.backoff.length === 1;
  return ({ event_id: id, type, body, attempt }) =>
    attemptOnce(app, { endpoint, secrets, event: { id, type, body }, attempt, is_only });
}

/** What a turn is told of the deliveries that its job has claimed. */
interface Hand extends Pick<Line, "waiting" | "made" | "size" | "is_stuck"> {
  may_claim: boolean;
  in_flight: Claim[];
}

/**
 * Stores the outcomes of attempts, and claims the next ones. Returns null when the job has ended, or has been
 * postponed.
 */
async function takeTurn(
  app: App,
  tx: Db,
  { job, hand, notices }: { job: Job<"deliver_webhooks">; hand: Hand; notices: Notices },
): Promise<{ endpoint: WebhookEndpointRow; claims: Claim[] } | null> {
  const [endpoint] = await endpointById(tx, { id: job.payload.endpoint_id });
  if (!endpoint) {
    await finishJob(tx, job);
    return null;
  }
  const counted = await recordOutcomes(app, tx, endpoint.id, hand.made);
  for (const claim of hand.waiting) if (!claim.superseded) await giveBack(app, tx, claim);
  await keepOnTheirWay(app, tx, hand.in_flight);
  const disabled = await countEndings(app, tx, endpoint, { endings: endingsOf(app, counted), notices });
  const after = disabled ? { ...endpoint, enabled: 0 } : endpoint;
  const more = after.enabled === 0 && (await failSomePending(tx, endpoint.id));
  const claims = await claimNext(app, tx, { endpoint: after, hand });
  if (claims.length > 0 || hand.in_flight.length > 0) return { endpoint, claims };
  const next_at = more ? app.now() : await earliestDue(tx, endpoint.id);
  const from = hand.is_stuck ? app.after(OWN_FAULT_SECONDS) : app.now();
  await (next_at === null ? finishJob(tx, job) : deferJob(tx, job, Math.max(next_at, from)));
  return null;
}

async function claimNext(
  app: App,
  tx: Db,
  { endpoint, hand }: { endpoint: WebhookEndpointRow; hand: Hand },
): Promise<Claim[]> {
  if (endpoint.enabled === 0 || !hand.may_claim || hand.in_flight.length >= LANES) return [];
  const bytes = hand.in_flight.reduce((left, { size }) => left - size, MAX_BYTES);
  const at_least = hand.in_flight.length === 0 ? 1 : 0;
  return claimDue(app, tx, { endpoint, room: { limit: hand.size, bytes, at_least } });
}

/** The deliveries that have ended and count: not those that will be tried again, and not the tests. */
function endingsOf(app: App, made: Made[]): Ending[] {
  return made
    .filter((one) => one.claim.livemode === 1 && (one.outcome.delivered || isExhausted(app, one)))
    .map(({ outcome: { delivered, error } }) => ({ delivered, error }));
}

/** Makes attempts until all are made, or it is time for another turn; what is on its way then goes on. */
async function attemptAll(line: Line, signal: AbortSignal, isMoreDue: () => Promise<boolean>): Promise<void> {
  const make = async (claim: Claim): Promise<void> => {
    line.in_flight.add(claim);
    try {
      const outcome = await line.make(claim);
      // Another turn may have begun meanwhile, with lists of its own.
      line.made.push({ claim, outcome });
    } catch {
      // The next turn puts it back with those that were not begun.
      line.is_stuck = true;
      line.waiting.push(claim);
    }
    line.in_flight.delete(claim);
    begin();
    if (line.in_flight.size === 0) line.idle();
  };
  const begin = (): void => {
    if (line.is_stuck) return;
    for (const claim of line.waiting.splice(0, LANES - line.in_flight.size)) void make(claim);
  };
  begin();
  for (;;) {
    const done = await idleWithin(line, signal);
    // Where one hangs, the next turn goes by how many others were made meanwhile.
    const base = done ? line.size : line.made.length;
    line.size = Math.max(LANES, Math.min(MAX_TURN, base * RAMP));
    if (done || signal.aborted || line.made.length + line.waiting.length > 0) return;
    if (line.in_flight.size < LANES && (await isMoreDue())) return;
  }
}

/** Whether no attempt was on its way any more before the time of a turn was up. */
async function idleWithin(line: Line, signal: AbortSignal): Promise<boolean> {
  if (line.in_flight.size === 0) return true;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), TURN_MS);
  const stop = (): void => resolve(false);
  signal.addEventListener("abort", stop, { once: true });
  line.idle = () => resolve(true);
  const idle = await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", stop);
  return idle;
}

const endpointById = prepared((db, key: { id: string }) =>
  db.selectFrom("webhook_endpoints").selectAll().where("id", "=", key.id).where("deleted_at", "is", null),
);
