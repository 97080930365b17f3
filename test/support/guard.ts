import {
  type AskedCall,
  GUARD,
  goingOf,
  type Objection,
  objectionToPlaces,
  WHERE,
} from "../../src/trust/guard/guard.ts";
import { noGivenIds } from "../../src/trust/guard/given-ids.ts";
import type { Tool } from "../../src/trust/guard/tool.ts";
import { TEXT_WORK } from "../../src/pipeline/text-work.ts";

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
  | "unseen"
  | "by_owner"
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
    unseen: asking.tainted,
    by_owner: true,
    given: noGivenIds(),
    material: "",
    calling_code: null,
    ...asking,
  };
  const objection = GUARD.objectionTo(asked);
  return objection === WHERE ? objectionToPlaces(goingOf(asked)) : objection;
}

/** The words by which a run with words of others is judged. */
interface Words {
  trusted_text?: string;
  material?: string;
  orders?: string[];
}

/** Why a tool of others' may not be given these arguments to write, in a run that has read words of others; null if it may. */
export async function objectionToWrite(
  args: Record<string, unknown>,
  { trusted_text = "@office mail bob@example.org a summary", material = "", orders = [] }: Words = {},
): Promise<string | null> {
  const going = goingOf({
    tool: { ...OFFICE, call: () => Promise.reject(new Error("not in this test")) },
    args,
    powers: { mayUse: () => true, mayWrite: () => true, destroy: false },
    tainted: true,
    beside: null,
    subject_alone: false,
    instruction: trusted_text,
    trusted_text,
    said: trusted_text,
    shared: null,
    told: [],
    since: null,
    written: [],
    orders,
    numbers: [],
    own_domains: ["mail.example.org"],
    material,
    given: noGivenIds(),
    calling_code: null,
    places: [],
    read_at: [],
    anybodys: true,
    unseen: true,
    by_owner: true,
  });
  const { objection, mails } = await TEXT_WORK.places(going);
  return (objection ?? (await TEXT_WORK.mailed({ going, mails })))?.reason ?? null;
}

const OFFICE: Omit<Tool, "call"> = {
  target: "mcp:office",
  name: "send",
  description: "",
  parameters: {},
  read_only: false,
  destructive: false,
  foreign: true,
};
