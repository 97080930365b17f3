import { type Going, type Objection, tooMuch } from "./guard.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { mayBeMail, wordsOfMail, wordsOnceShown } from "./shown-words.ts";
import { objectionToYes } from "./written-consents.ts";
import { objectionToOrder } from "./written-orders.ts";

/** What is known of a call by those who look for orders in its texts. */
export type Giving = Pick<Going, "args" | "unseen" | "by_owner" | "orders" | "numbers"> & {
  tool: Pick<Going["tool"], "name" | "foreign" | "read_only">;
};

/** An order that stands in a text only once it is shown, and texts that are still to be read as mails. */
export interface HiddenOrder {
  objection: Objection | null;
  mails: string[];
}

/**
 * Returns the objection to an order that stands in a text only for who reads it as the HTML of a mail, as this server does, or makes
 * such of it first, as of Markdown.
 */
export async function objectionToHiddenOrder(going: Giving): Promise<HiddenOrder> {
  const { tool, args, unseen } = going;
  if (!tool.foreign || tool.read_only || !unseen) return { objection: null, mails: [] };
  const texts: string[] = [];
  for (const given of textsIn(args)) {
    if (given === TOO_MUCH) return { objection: tooMuch(tool.name), mails: [] };
    if (typeof given.value === "string") texts.push(given.value);
  }
  const { html, markdown } = await wordsOnceShown(texts);
  const objection = objectionInWords(going, html) ?? objectionInWords(going, markdown);
  return { objection, mails: texts.filter(mayBeMail) };
}

/** Returns the objection to an order, or a yes, in a mail that a tool is given as a whole, as this server reads it once it comes. */
export async function objectionToMailed(going: Giving, mails: string[]): Promise<Objection | null> {
  const words = await Promise.all(mails.map(wordsOfMail));
  return objectionInWords(going, words.flat()) ?? objectionToYes({ ...going, args: { text: words.flat() } });
}

function objectionInWords(going: Giving, words: string[]): Objection | null {
  return words.length === 0 ? null : objectionToOrder({ ...going, args: { text: words } }, { apart: true });
}
