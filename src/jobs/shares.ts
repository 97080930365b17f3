import { groupOf, linesOf, type Share } from "./queue.ts";

/** The part of the slots that one account never takes, even alone, so that the next account's job starts at once. */
const KEPT_FREE = 1 / 4;
const MIN_KEPT_FREE = 4;
/** A job that needs at most this part of the memory may start without free memory if it is the first of its account. */
const SMALL = 1 / 128;

/** What a job uses of its pool while it runs. */
export interface Use {
  share: Share | null;
  /** Bytes of memory that it may need; 0 where that does not matter. */
  weight: number;
  /**
   * The outside server or service that the job works with, for which a pool has only so many slots; null where that
   * does not matter.
   */
  target: string | null;
}

/** The capacity of a pool. */
export interface Room {
  slots: number;
  bytes: number;
  target_slots: number;
}

/** An account at a target. */
interface Place {
  account: string;
  target: string;
}

interface Sums {
  jobs: number;
  bytes: number;
}

/** What runs, and for which accounts. */
export interface Uses {
  add: (use: Use) => void;
  remove: (use: Use) => void;
  /** What all running jobs use together; jobs without a share do not count among `jobs`. */
  all: () => Sums;
  ofAccount: (account: string) => Sums;
  /** The part of `ofAccount` that strangers caused. */
  ofStrangers: (account: string) => Sums;
  /** What the members of a group use together. */
  ofGroup: (group: string) => Sums;
  ofTarget: (target: string) => Sums;
  ofAccountAt: (place: Place) => Sums;
  /** The pairs of account and target with running jobs. */
  places: () => Place[];
  /** Prevents further jobs of the account at the target until the returned function is called. */
  close: (use: Use) => () => void;
  /** The pairs of account and target for which that holds. */
  closed: () => Place[];
  /** The sum over accounts of the bytes they use beyond `bytes`. */
  beyond: (bytes: number) => number;
  /** The accounts with running jobs. */
  accounts: () => IteratorObject<string>;
  /** Returns an independent copy. */
  fork: () => Uses;
}

const NOTHING: Sums = { jobs: 0, bytes: 0 };

export function createUses(base?: Uses): Uses {
  const accounts = new Map<string, Sums>();
  const strangers = new Map<string, Sums>();
  const groups = new Map<string, Sums>();
  const targets = new Map<string, Sums>();
  const places = new Map<string, Sums>();
  const closed = new Set<Place>();
  const all = { ...NOTHING };
  const change = ({ share, weight, target }: Use, by: 1 | -1): void => {
    const sums = { jobs: by, bytes: by * weight };
    all.bytes += sums.bytes;
    if (share !== null) {
      all.jobs += by;
      addTo(accounts, share.account, sums);
      if (isOfStrangers({ share })) addTo(strangers, share.account, sums);
      const group = groupOf(share.account);
      if (group !== null) addTo(groups, group, sums);
    }
    const place = placeOf({ share, target });
    if (place === null) return;
    addTo(targets, place.target, sums);
    addTo(places, keyOf(place), sums);
  };
  const uses: Uses = {
    add: (use) => change(use, 1),
    remove: (use) => change(use, -1),
    all: () => sumOf(all, base?.all()),
    ofAccount: (account) => sumOf(accounts.get(account), base?.ofAccount(account)),
    ofStrangers: (account) => sumOf(strangers.get(account), base?.ofStrangers(account)),
    ofGroup: (group) => sumOf(groups.get(group), base?.ofGroup(group)),
    ofTarget: (target) => sumOf(targets.get(target), base?.ofTarget(target)),
    ofAccountAt: (place) => sumOf(places.get(keyOf(place)), base?.ofAccountAt(place)),
    places: () => [...[...places.keys()].map(placeAt), ...(base?.places() ?? [])],
    close: (use) => {
      const place = placeOf(use);
      if (place !== null) closed.add(place);
      return () => void (place !== null && closed.delete(place));
    },
    closed: () => [...closed, ...(base?.closed() ?? [])],
    beyond: (bytes) =>
      uses.accounts().reduce((sum, name) => sum + Math.max(0, uses.ofAccount(name).bytes - bytes), 0),
    accounts: () => new Set([...accounts.keys(), ...(base?.accounts() ?? [])]).values(),
    fork: () => createUses(uses),
  };
  return uses;
}

function keyOf({ account, target }: Place): string {
  return `${account}\n${target}`;
}

function placeOf({ share, target }: Pick<Use, "share" | "target">): Place | null {
  return target === null ? null : { account: share?.account ?? "", target };
}

function placeAt(key: string): Place {
  const [account = "", target = ""] = key.split("\n");
  return { account, target };
}

/**
 * The state in which a job is admitted: what runs, the capacity, the free slots, and `most`, the jobs that an account
 * may have for now.
 */
interface State {
  uses: Uses;
  room: Room;
  free: number;
  most: number;
}

type Lack = "account" | "target" | "memory" | null;

/**
 * Returns what a job lacks to run now, with `free` slots left. An account may use as many slots, and as much memory, as
 * it leaves free: at most half while others wait. Alone it may use more slots, except those kept for the next account.
 * Its first job needs only a slot and the memory.
 */
export function whyNot(use: Use, state: State): Lack {
  const { share, weight } = use;
  const { uses, room } = state;
  const place = placeOf(use);
  if (place !== null && isFullFor(place, state)) return "target";
  const left = memoryLeft(uses, room);
  if (share === null) return weight > left ? "memory" : null;
  const lackOfGroup = lackInGroup({ ...use, share }, { ...state, left });
  if (lackOfGroup !== null) return lackOfGroup;
  const own = uses.ofAccount(share.account);
  const is_first = own.jobs === 0;
  if (weight > left && !(is_first && isSmall(use, room))) return "memory";
  if (is_first) return null;
  const lack = lackBeside(own, { ...use, share }, { ...state, left });
  const onlyStrangers = own.jobs === uses.ofStrangers(share.account).jobs;
  return onlyStrangers ? lackBesideStrangers(lack, own, { ...use, share }, { ...state, left }) : lack;
}

/**
 * Returns whether an account has all the slots at a target that it may have: as many as it leaves free, even when
 * alone. Its first job needs only one free slot.
 */
function isFullFor(place: Place, { uses, room }: Pick<State, "uses" | "room">): boolean {
  const free = room.target_slots - uses.ofTarget(place.target).jobs;
  const own = uses.ofAccountAt(place).jobs;
  return free <= 0 || (own > 0 && own >= free);
}

/**
 * Returns what a claim may skip: targets without any free slot and, by line, accounts without a further slot at a
 * target.
 */
export function fullTargets(uses: Uses, room: Room): string[] {
  if (room.target_slots === Number.POSITIVE_INFINITY) return [];
  const full = uses.places().flatMap((place) => {
    if (!isFullFor(place, { uses, room })) return [];
    if (uses.ofTarget(place.target).jobs >= room.target_slots) return [place.target];
    return linesAt(place);
  });
  return [...new Set([...full, ...uses.closed().flatMap(linesAt)])];
}

function linesAt({ account, target }: Place): string[] {
  return linesOf(account).map((line) => keyOf({ account: line, target }));
}

/**
 * Returns what a job lacks within its group. The group may use as much as it leaves free, like one account; a member
 * may use as much of the group's part as it leaves to the other members.
 */
function lackInGroup({ share, weight }: Shared, { uses, free, left }: Left): Lack {
  const group = groupOf(share.account);
  if (group === null) return null;
  const together = uses.ofGroup(group);
  if (together.jobs === 0) return null;
  const own = uses.ofAccount(share.account).jobs;
  const more = Math.ceil((free - together.jobs) / 2);
  if (more <= 0 || (own > 0 && own >= more)) return "account";
  return together.bytes + weight > left - weight ? "memory" : null;
}

/** Whether strangers to its account caused the job. */
export function isOfStrangers({ share }: Pick<Use, "share">): boolean {
  return share?.strangers === true;
}

type Shared = Use & { share: Share };
type Left = State & { left: number };

/**
 * Returns what a job lacks when strangers caused everything that its account runs. A job of strangers has to leave room
 * for one more like it. A small job of the household needs only a slot that is not the last: the account's share may
 * have become smaller since the strangers' jobs started.
 */
function lackBesideStrangers(lack: Lack, own: Sums, use: Shared, state: Left): Lack {
  const { weight, share } = use;
  if (isOfStrangers(use)) {
    const more = { jobs: own.jobs + 1, bytes: own.bytes + weight };
    return lack ?? lackBeside(more, use, { ...state, free: state.free - 1, left: state.left - weight });
  }
  const is_within_plan = share.slots === null || own.jobs < share.slots;
  return is_within_plan && state.free > 1 && isSmall(use, state.room) ? null : lack;
}

/** Returns what a job lacks, given what its account uses already. */
function lackBeside(own: Sums, { share, weight }: Shared, state: Left): Lack {
  if (!mayHaveSlot(share, own, state)) return "account";
  return own.bytes + weight > state.left - weight ? "memory" : null;
}

function mayHaveSlot({ slots }: Share, own: Sums, { uses, room, free, most }: State): boolean {
  if (own.jobs >= Math.min(most, slots ?? Number.POSITIVE_INFINITY)) return false;
  if (own.jobs < free) return true;
  const alone = own.jobs >= uses.all().jobs;
  return alone && free > Math.max(MIN_KEPT_FREE, room.slots * KEPT_FREE);
}

function isSmall({ weight }: Use, room: Room): boolean {
  return weight <= room.bytes * SMALL;
}

/** Returns whether a job may run now if nobody else waits for its slot and memory. */
export function hasRoom(use: Use, { uses, room, free }: Omit<State, "most">): boolean {
  return free > 0 && whyNot(use, { uses, room, free, most: Number.POSITIVE_INFINITY }) === null;
}

/**
 * Returns whether memory may be kept for a job: with it the account has at most half of all, or this job is most of
 * what it has. A job of strangers also leaves room for one more like it if anything of their account runs.
 */
export function mayHaveKept(use: Use, { uses, room }: Pick<State, "uses" | "room">): boolean {
  if (use.share === null) return false;
  const own = uses.ofAccount(use.share.account);
  if (own.jobs >= (use.share.slots ?? Number.POSITIVE_INFINITY)) return false;
  const weight = memoryOf(use, room);
  if (isOfStrangers(use)) return own.jobs === 0 || own.bytes + 2 * weight <= room.bytes / 2;
  return own.bytes + weight <= room.bytes / 2 || own.bytes < weight;
}

/**
 * Returns whether the memory kept for a job is free. The memory of small first jobs does not count, because such jobs
 * also start while others wait for memory.
 */
export function hasKept(use: Use, { uses, room, free }: Omit<State, "most">): boolean {
  if (free <= 0 || !mayHaveKept(use, { uses, room })) return false;
  if (use.target !== null && uses.ofTarget(use.target).jobs >= room.target_slots) return false;
  return memoryOf(use, room) <= room.bytes - uses.beyond(room.bytes * SMALL);
}

/** Returns the memory that a job uses, in bytes; a job larger than all of the memory uses all of it. */
export function memoryOf({ weight }: Pick<Use, "weight">, room: Room): number {
  return Math.min(weight, room.bytes);
}

/** Returns the weight of the largest job for which there is memory. */
export function largestJob(uses: Uses, room: Room): number {
  return Math.max(memoryLeft(uses, room), Math.min(room.bytes * SMALL, Number.MAX_SAFE_INTEGER));
}

/** Returns the bytes of memory that are free. A job that is larger than all of it runs when nothing else does. */
function memoryLeft(uses: Uses, room: Room): number {
  const { bytes } = uses.all();
  return bytes === 0 ? Number.MAX_SAFE_INTEGER : Math.min(Number.MAX_SAFE_INTEGER, room.bytes - bytes);
}

function addTo(sums: Map<string, Sums>, key: string, { jobs, bytes }: Sums): void {
  const known = sums.get(key) ?? NOTHING;
  const sum = { jobs: known.jobs + jobs, bytes: known.bytes + bytes };
  if (sum.jobs === 0 && sum.bytes === 0) sums.delete(key);
  else sums.set(key, sum);
}

function sumOf(one: Sums = NOTHING, other: Sums = NOTHING): Sums {
  return { jobs: one.jobs + other.jobs, bytes: one.bytes + other.bytes };
}
