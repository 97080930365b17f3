import type { Db } from "../../../db/database.ts";
import { prepared } from "../../../db/prepared.ts";
import { millisecondsOf } from "../../../lib/first-id.ts";

/** The ids of one millisecond, which 12 of their bits count. */
const IDS_IN_A_MS = 4_096;
/** Milliseconds are counted from 2020 on, so that a place is a whole number of JavaScript until 2089. */
const BEGIN_MS = Date.UTC(2020);
/** How much text a slot takes. A beginning of words is looked up among all words of one slot, which must not take long. */
export const SLOT_CHARS = 8_388_608;

/**
 * The place of a message among all that are indexed, which follows the order of ids (UUIDv7). A message whose place is taken
 * has the next one. What has only the beginning of an id has the place before all others of that moment.
 */
export function placeOf(id: string): number {
  const count = Number.parseInt(id.slice(15, 18), 16) || 0;
  // An id that a damaged disk has changed has a place like any other.
  return ((millisecondsOf(id) || 0) - BEGIN_MS) * IDS_IN_A_MS + count;
}

/** Returns the first id that has a place. */
export function idAt(place: number): string {
  const ms = Math.floor(place / IDS_IN_A_MS);
  const time = (ms + BEGIN_MS).toString(16).padStart(12, "0");
  const count = (place - ms * IDS_IN_A_MS).toString(16).padStart(3, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-8000-000000000000`;
}

/** Returns where the texts of a message go, which are nowhere now: to the place of its id, in a slot with room. */
export async function roomFor(
  tx: Db,
  { user_id, id }: { user_id: string; id: string },
  chars: number,
): Promise<{ place: number; slot: number }> {
  const place = await freePlace(tx, placeOf(id));
  const [open] = await openSlots(tx, { user_id, place });
  const [slot] = open
    ? await growSlot(tx, { slot: open.slot, place, chars })
    : await newSlot(tx, { user_id, first: place, last: place, chars });
  return { place, slot: slot?.slot ?? 0 };
}

async function freePlace(tx: Db, from: number): Promise<number> {
  let place = from;
  while ((await takenPlace(tx, { place })).length > 0) place += 1;
  return place;
}

const takenPlace = prepared((db, key: { place: number }) =>
  db.selectFrom("indexed_messages").select("place").where("place", "=", key.place),
);

/** The slot with room that is nearest, so that each has messages of one time. */
const openSlots = prepared((db, key: { user_id: string; place: number }) =>
  db
    .selectFrom("text_slots")
    .select("slot")
    .where("user_id", "=", key.user_id)
    .where("chars", "<", SLOT_CHARS)
    .orderBy((eb) => eb.fn("max", [eb("first", "-", key.place), eb(eb.val(key.place), "-", eb.ref("last"))]))
    .limit(1),
);

const growSlot = prepared((db, key: { slot: number; place: number; chars: number }) =>
  db
    .updateTable("text_slots")
    .set((eb) => ({
      chars: eb("chars", "+", key.chars),
      first: eb.fn("min", ["first", eb.val(key.place)]),
      last: eb.fn("max", ["last", eb.val(key.place)]),
    }))
    .where("slot", "=", key.slot)
    .returning("slot"),
);

const newSlot = prepared((db, row: { user_id: string; first: number; last: number; chars: number }) =>
  db
    .insertInto("text_slots")
    .values({ user_id: row.user_id, first: row.first, last: row.last, chars: row.chars })
    .returning("slot"),
);
