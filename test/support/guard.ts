import {
  type AskedCall,
  GUARD,
  goingOf,
  type Objection,
  objectionToPlaces,
  WHERE,
} from "../../src/trust/guard/guard.ts";
import { noGivenIds } from "../../src/trust/guard/given-ids.ts";

/** A call in a message of trusted words alone, in which nothing was shared, unless it says something else. */
type Asking = Omit<
  AskedCall,
  | "said"
  | "shared"
  | "told"
  | "since"
  | "written"
  | "orders"
  | "numbers"
  | "given"
  | "material"
  | "calling_code"
> &
  Partial<AskedCall>;

/** What the guard says of a call in the end, wherever it has to look. */
export function objectionTo(asking: Asking): Objection | null {
  const asked: AskedCall = {
    said: asking.trusted_text,
    shared: null,
    told: [],
    since: null,
    written: [],
    orders: [],
    numbers: [],
    given: noGivenIds(),
    material: "",
    calling_code: null,
    ...asking,
  };
  const objection = GUARD.objectionTo(asked);
  return objection === WHERE ? objectionToPlaces(goingOf(asked)) : objection;
}
