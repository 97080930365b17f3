import { breaksLine, wordsInKey } from "./prose.ts";
import { wordSet } from "./words.ts";

/** Words in parameter names for what something is called: a value there is not sent to a site of that name. */
const THINGS = wordSet(
  "vendor vendors supplier suppliers company companies merchant payee payer brand brands product products category categories field fields column columns sort package packages customer customers organization organisation firm shop store seller buyer manufacturer publisher author authors memo purpose reason entity entities device devices",
);
/** Words in parameter names for a name: the value may be a destination, unless it has other words beside it. */
const WORDS = wordSet("name names item items row rows cell cells who person people");
/** Words in parameter names for a file: a file extension there is one. */
const FILES = wordSet(
  "file files filename filenames path paths name names title titles document documents doc docs attachment attachments image images photo photos picture pictures src source sources script scripts module modules package packages folder folders directory dir page pages sheet template item items row rows cell cells tag tags label labels text",
);
/** Words in parameter names for a destination: an address, which may be a number or just the name of a site. */
const PLACES = wordSet(
  "to phone phones tel mobile cell sms fax whatsapp msisdn target dest destination destinations receiver receivers ip addr remote node instance via peer relay gateway upstream mirror registry sink forward",
);
/** Words in parameter names for a telephone number, and words beside them that say whose or which one. */
const PHONES = wordSet("phone phones telephone tel mobile sms fax whatsapp msisdn");
const WHOSE = wordSet(
  "number numbers no nr to recipient recipients receiver work home cell customer contact user client business office primary new raw dest destination target",
);
/** Words in parameter names for a recipient, who may be given by a number. */
const RECEIVERS = wordSet(
  "to cc bcc recipient recipients receiver receivers dest destination destinations target attendee attendees participant participants guest guests invitee invitees contact contacts member members",
);
/** Words in parameter names for where something begins, such as a period. */
const BEGINNINGS = wordSet("from start begin since after offset min");
/** Parameter names that end in `id`. */
const ID_KEY = /(?:^|[^A-Za-z])ids?$|I[dD]s?$/;
/** Words in parameter names for numbered things, such as orders. */
const NUMBERED = wordSet(
  "order orders invoice invoices tracking shipment ean gtin isbn sku reference ref customer tax vat serial ticket case contract policy article",
);

function hasOneOf(key: string, words: ReadonlySet<string>): boolean {
  return wordsInKey(key).some((word) => words.has(word));
}

/**
 * Returns whether a parameter's value is a name of somebody or something: `vendor`, `product_name`, `name` with several
 * words.
 */
export function namesThings(key: string, value: string): boolean {
  // Text on a second line is not part of a name: it may be a field that says where something goes.
  if (isPlaceKey(key) || breaksLine(value)) return false;
  return hasOneOf(key, THINGS) || ID_KEY.test(key) || (hasOneOf(key, WORDS) && /\S\s+\S/.test(value));
}

/** Returns whether a parameter may hold a file name: `path`, `attachments`. */
export function namesFiles(key: string): boolean {
  return hasOneOf(key, FILES) && !isPlaceKey(key);
}

/** Returns whether a parameter holds a destination: `mobile`, `destination`. */
export function isPlaceKey(key: string): boolean {
  return hasOneOf(key, PLACES);
}

/** Returns whether a parameter holds a telephone number: `phone`, `mobile_number`. */
export function isPhoneKey(key: string): boolean {
  return hasOneOf(key, PHONES) && wordsInKey(key).every((word) => PHONES.has(word) || WHOSE.has(word));
}

/** Returns whether a parameter holds where something begins: `from`, `start_time`. */
export function isBeginningKey(key: string): boolean {
  return hasOneOf(key, BEGINNINGS);
}

/** Returns whether a parameter may hold a recipient's number: `to`, `number`, `recipients`. */
export function isReceiverKey(key: string): boolean {
  return /^numbers?$/i.test(key) || (hasOneOf(key, RECEIVERS) && !numbersThings(key));
}

/** Returns whether a parameter holds an id or a number of a thing: `message_id`, `invoice_no`, `ean`. */
export function numbersThings(key: string): boolean {
  return ID_KEY.test(key) || (hasOneOf(key, NUMBERED) && !isPlaceKey(key));
}
