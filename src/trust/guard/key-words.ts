import { breaksLine, wordsInKey } from "./prose.ts";
import { wordSet } from "./words.ts";

/** Below such a key stands what something is called: nothing goes to whoever has the name of a site there. */
const THINGS = wordSet(
  "vendor vendors supplier suppliers company companies merchant payee payer brand brands product products category categories field fields column columns sort package packages customer customers organization organisation firm shop store seller buyer manufacturer publisher author authors memo purpose reason entity entities device devices",
);
/** Below such a key it may be somewhere to go, unless other words stand beside it. */
const WORDS = wordSet("name names item items row rows cell cells who person people");
/** Below such a key the ending of a file is one. */
const FILES = wordSet(
  "file files filename filenames path paths name names title titles document documents doc docs attachment attachments image images photo photos picture pictures src source sources script scripts module modules package packages folder folders directory dir page pages sheet template item items row rows cell cells tag tags label labels text",
);
/** Below such a key stands where something goes: an address, which may be a number or the name of a site alone. */
const PLACES = wordSet(
  "to phone phones tel mobile cell sms fax whatsapp msisdn target dest destination destinations receiver receivers ip addr remote node instance via peer relay gateway upstream mirror registry sink forward",
);
/** Below such a key stands the number of a telephone, and beside it in a key whose or which one it is. */
const PHONES = wordSet("phone phones telephone tel mobile sms fax whatsapp msisdn");
const WHOSE = wordSet(
  "number numbers no nr to recipient recipients receiver work home cell customer contact user client business office primary new raw dest destination target",
);
/** Below such a key stands who gets something, which may be a number. */
const RECEIVERS = wordSet(
  "to cc bcc recipient recipients receiver receivers dest destination destinations target attendee attendees participant participants guest guests invitee invitees contact contacts member members",
);
/** Ids that somebody has given. */
const ID_KEY = /(?:^|[^A-Za-z])ids?$|I[dD]s?$/;
/** What somebody has numbered. */
const NUMBERED = wordSet(
  "order orders invoice invoices tracking shipment ean gtin isbn sku reference ref customer tax vat serial ticket case contract policy article",
);

function hasOneOf(key: string, words: ReadonlySet<string>): boolean {
  return wordsInKey(key).some((word) => words.has(word));
}

/** Whether the value of a parameter names somebody or something: `vendor`, `product_name`, `name` with several words. */
export function namesThings(key: string, value: string): boolean {
  // What follows a name in a second line is no name: it may be a field that says where something goes.
  if (isPlaceKey(key) || breaksLine(value)) return false;
  return hasOneOf(key, THINGS) || ID_KEY.test(key) || (hasOneOf(key, WORDS) && /\S\s+\S/.test(value));
}

/** Whether the value of a parameter may be the name of a file: `path`, `attachments`. */
export function namesFiles(key: string): boolean {
  return hasOneOf(key, FILES) && !isPlaceKey(key);
}

/** Whether the value of a parameter is where something goes: `mobile`, `destination`. */
export function isPlaceKey(key: string): boolean {
  return hasOneOf(key, PLACES);
}

/** Whether the value of a parameter is the number of a telephone: `phone`, `mobile_number`. */
export function isPhoneKey(key: string): boolean {
  return hasOneOf(key, PHONES) && wordsInKey(key).every((word) => PHONES.has(word) || WHOSE.has(word));
}

/** Whether the value of a parameter may be the number of whoever gets something: `to`, `number`, `recipients`. */
export function isReceiverKey(key: string): boolean {
  return /^numbers?$/i.test(key) || (hasOneOf(key, RECEIVERS) && !numbersThings(key));
}

/** Whether a number is an id, or that of a thing: `message_id`, `invoice_no`, `ean`. */
export function numbersThings(key: string): boolean {
  return ID_KEY.test(key) || (hasOneOf(key, NUMBERED) && !isPlaceKey(key));
}
