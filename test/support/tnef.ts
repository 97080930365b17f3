/** A winmail.dat as Outlook makes one (MS-OXTNEF), of what a test says is in it. */
export interface TnefParts {
  subject?: string;
  message_class?: string;
  body?: string;
  html?: string;
  files?: {
    /** In front of its data, in the code page of the whole. */
    title?: string;
    long_name?: string;
    content_type?: string;
    hidden?: boolean;
    content?: string | Uint8Array;
    /** A winmail.dat in place of a file: an attached mail. */
    mail?: Uint8Array;
  }[];
  codepage?: number;
}

export function tnef({
  subject,
  message_class,
  body,
  html,
  files = [],
  codepage = 1252,
}: TnefParts): Uint8Array {
  const message = [
    ...(message_class === undefined ? [] : [unicode(0x001a, message_class)]),
    ...(subject === undefined ? [] : [unicode(0x0037, subject)]),
    ...(body === undefined ? [] : [unicode(0x1000, body)]),
    ...(html === undefined ? [] : [property(0x102, 0x1013, longValue(Buffer.from(html)))]),
    property(0x03, 0x3fde, u32(65_001)),
    // One of a name of its own, and one with two values, stand in front of what is looked for.
    property(0x03, 0x8001, Buffer.concat([Buffer.alloc(16), u32(1), longOne(utf16("Keywords")), u32(7)])),
    property(0x101f, 0x3a00, Buffer.concat([u32(2), longOne(utf16("one")), longOne(utf16("two"))])),
  ];
  return Buffer.concat([
    Buffer.from("789f3e220100", "hex"),
    attribute(1, 0x9007, Buffer.concat([u32(codepage), u32(0)])),
    attribute(1, 0x9003, Buffer.concat([u32(message.length), ...message])),
    ...files.flatMap((file) => fileOf(file)),
  ]);
}

function fileOf(file: NonNullable<TnefParts["files"]>[number]): Buffer[] {
  const held =
    file.mail && Buffer.concat([Buffer.from("0703020000000000c000000000000046", "hex"), file.mail]);
  const properties = [
    ...(file.long_name === undefined ? [] : [unicode(0x3707, file.long_name)]),
    ...(file.content_type === undefined
      ? []
      : [property(0x1e, 0x370e, longValue(Buffer.from(`${file.content_type}\0`)))]),
    ...(file.hidden ? [property(0x0b, 0x7ffe, u32(1))] : []),
    ...(held ? [property(0x0d, 0x3701, longValue(held))] : []),
  ];
  return [
    attribute(2, 0x9002, Buffer.alloc(14)),
    ...(file.title === undefined ? [] : [attribute(2, 0x8010, Buffer.from(`${file.title}\0`, "latin1"))]),
    ...(file.content === undefined ? [] : [attribute(2, 0x800f, Buffer.from(file.content))]),
    attribute(2, 0x9005, Buffer.concat([u32(properties.length), ...properties])),
  ];
}

export function attribute(level: number, id: number, data: Uint8Array): Buffer {
  const sum = data.reduce((total, byte) => (total + byte) % 65_536, 0);
  return Buffer.concat([Buffer.from([level]), u16(id), u16(0), u32(data.length), data, u16(sum)]);
}

function unicode(id: number, text: string): Buffer {
  return property(0x1f, id, longValue(utf16(text)));
}

function utf16(text: string): Buffer {
  return Buffer.from(`${text}\0`, "utf16le");
}

function property(type: number, id: number, value: Uint8Array): Buffer {
  return Buffer.concat([u16(type), u16(id), value]);
}

/** One value of a type whose values are as long as they say. */
function longValue(data: Uint8Array): Buffer {
  return Buffer.concat([u32(1), longOne(data)]);
}

function longOne(data: Uint8Array): Buffer {
  return Buffer.concat([u32(data.length), data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
}

function u16(value: number): Buffer {
  return Buffer.from([value & 255, value >> 8]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
