import {
  type AskedCall,
  GUARD,
  goingOf,
  type Objection,
  objectionToPlaces,
  WHERE,
} from "../../src/trust/guard/guard.ts";

/** What the guard says of a call in the end, wherever it has to look. */
export function objectionTo(asked: AskedCall): Objection | null {
  const objection = GUARD.objectionTo(asked);
  return objection === WHERE ? objectionToPlaces(goingOf(asked)) : objection;
}
