import {
  codepageText,
  type MapiProperties,
  OBJECT,
  propertyText,
  readProperties,
  uint16,
  uint32,
} from "./mapi-properties.ts";

/**
 * What a winmail.dat holds. Its texts count as others' words: they may differ from those that the mail shows elsewhere.
 */
export interface TnefMail {
  subject: string;
  /** What Outlook calls its kind: `IPM.Note` for a mail (MS-OXCMSG §2.2.1.3). */
  message_class: string;
  /** The mail itself, if the file has it as text or as HTML; a mail only in rich text is empty. */
  text: string;
  html: string;
  files: TnefFile[];
  /** Mails attached to it. */
  mails: TnefMail[];
}

export interface TnefFile {
  name: string;
  /** The type as its sender's program names it; "" if it does not. */
  content_type: string;
  bytes: Uint8Array;
  /** True if it is shown inside the text, not listed as a file. */
  inline: boolean;
}

/** Attribute ids of TNEF, their lower half (MS-OXTNEF §2.1.3.2). */
const SUBJECT = 0x8004;
const MESSAGE_CLASS = 0x8008;
const BODY = 0x800c;
const ATTACH_DATA = 0x800f;
const ATTACH_TITLE = 0x8010;
const ATTACH_REND_DATA = 0x9002;
const MESSAGE_PROPERTIES = 0x9003;
const ATTACHMENT_PROPERTIES = 0x9005;
const OEM_CODEPAGE = 0x9007;
/** Property ids (MS-OXPROPS). */
const P_MESSAGE_CLASS = 0x001a;
const P_SUBJECT = 0x0037;
const P_BODY = 0x1000;
const P_HTML = 0x1013;
const P_DATA = 0x3701;
const P_LONG_NAME = 0x3707;
const P_MIME_TYPE = 0x370e;
const P_HTML_CODEPAGE = 0x3fde;
const P_HIDDEN = 0x7ffe;
/** Bytes of the interface id that precedes the data of an object (MS-OXTNEF §2.1.3.4). */
const INTERFACE_BYTES = 16;
const HEAD_BYTES = 6;
const MAX_DEPTH = 3;
const NOTHING = new Uint8Array();

/** Returns whether a file is in TNEF (Outlook's winmail.dat), whatever its name. */
export function isTnef(bytes: Uint8Array): boolean {
  return uint32(bytes, 0) === 0x223e9f78;
}

/**
 * Reads a TNEF stream (MS-OXTNEF): its first `max` files, and attached mails to a bounded depth. Each of its bytes is
 * read at most once at each depth, and the result is no longer than the stream. What is cut off is left out.
 */
export function readTnef(stream: Uint8Array, max: number, depth = 1): TnefMail {
  const [message, ...attached] = itemsOf(stream, max);
  const { codepage } = message;
  const html_codepage = uint32(message.properties.get(P_HTML_CODEPAGE)?.data ?? NOTHING, 0) || codepage;
  const mail: TnefMail = {
    subject: textOf(message, P_SUBJECT, SUBJECT),
    message_class: textOf(message, P_MESSAGE_CLASS, MESSAGE_CLASS),
    text: textOf(message, P_BODY, BODY),
    html: propertyText(message.properties, P_HTML, html_codepage),
    files: [],
    mails: [],
  };
  for (const item of attached) {
    const inner = objectOf(item);
    if (!inner || !isTnef(inner)) mail.files.push(fileOf(item));
    else if (depth < MAX_DEPTH) mail.mails.push(readTnef(inner, max, depth + 1));
  }
  return mail;
}

function fileOf(item: Item): TnefFile {
  const { attributes, properties, codepage } = item;
  const data = attributes.get(ATTACH_DATA) ?? objectOf(item) ?? properties.get(P_DATA)?.data ?? NOTHING;
  return {
    name: textOf(item, P_LONG_NAME, ATTACH_TITLE),
    content_type: propertyText(properties, P_MIME_TYPE, codepage),
    // A copy, because it is handed to another thread.
    bytes: data.slice(),
    inline: properties.get(P_HIDDEN)?.data[0] === 1,
  };
}

function objectOf({ properties }: Item): Uint8Array | undefined {
  const held = properties.get(P_DATA);
  return held?.type === OBJECT ? held.data.subarray(INTERFACE_BYTES) : undefined;
}

function textOf({ attributes, properties, codepage }: Item, property: number, attribute: number): string {
  const text = propertyText(properties, property, codepage);
  return text === "" ? codepageText(attributes.get(attribute) ?? NOTHING, codepage) : text;
}

/** The mail, or a file attached to it. TNEF describes it in two ways: by attributes and by properties. */
interface Item {
  attributes: Attributes;
  properties: MapiProperties;
  codepage: number;
}

function itemsOf(stream: Uint8Array, max: number): [Item, ...Item[]] {
  const { message, attached } = attributesOf(stream, max);
  const codepage = uint32(message.get(OEM_CODEPAGE) ?? NOTHING, 0);
  const itemOf = (attributes: Attributes, list: number): Item => ({
    attributes,
    properties: readProperties(attributes.get(list) ?? NOTHING),
    codepage,
  });
  return [itemOf(message, MESSAGE_PROPERTIES), ...attached.map((one) => itemOf(one, ATTACHMENT_PROPERTIES))];
}

type Attributes = Map<number, Uint8Array>;

/**
 * Returns the attributes of a stream (§2.1.1): each has a level, an id, a length, that many bytes and a checksum. Those
 * of the mail come first, then those of each file.
 */
function attributesOf(stream: Uint8Array, max: number): { message: Attributes; attached: Attributes[] } {
  const message: Attributes = new Map();
  const attached: Attributes[] = [];
  for (let at = HEAD_BYTES; at + 9 <= stream.length;) {
    const id = uint16(stream, at + 1);
    const start = at + 9;
    const end = start + uint32(stream, at + 5);
    if (end > stream.length) break;
    if (id === ATTACH_REND_DATA && attached.push(new Map()) > max)
      return { message, attached: attached.slice(0, max) };
    const attributes = attached.at(-1) ?? message;
    if (!attributes.has(id)) attributes.set(id, stream.subarray(start, end));
    at = end + 2;
  }
  return { message, attached };
}
