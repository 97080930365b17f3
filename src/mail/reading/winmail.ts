import { safeFilename } from "../../trust/shown/attachment-name.ts";
import type { MailAttachment } from "./parse.ts";
import { isTnef, readTnef, type TnefFile, type TnefMail } from "./tnef.ts";

/** A mail from a winmail.dat: the surrounding mail in another form, or one that is attached to it. */
export interface PackedMail {
  subject: string;
  message_class: string;
  text: string;
  html: string;
  attached: boolean;
}

/**
 * Replaces each winmail.dat of Outlook by the files in it, at most `max` in all, and returns the mails in it. A file
 * that only has the name stays a file.
 */
export function unpackWinmail(
  files: MailAttachment[],
  max: number,
): { files: MailAttachment[]; packed: PackedMail[] } {
  const packed: PackedMail[] = [];
  const unpacked: MailAttachment[] = [];
  const take = (mail: TnefMail, attached: boolean): void => {
    const { subject, message_class, text, html } = mail;
    packed.push({ subject, message_class, text, html, attached });
    for (const file of mail.files.slice(0, Math.max(0, max - unpacked.length)))
      unpacked.push(packedFile(file, unpacked.length + 1));
    for (const inner of mail.mails) take(inner, true);
  };
  for (const file of files) {
    if (isTnef(file.bytes)) take(readTnef(file.bytes, max), false);
    else unpacked.push(file);
  }
  return { files: unpacked, packed };
}

const MIME_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}$/;

function packedFile({ name, content_type, bytes, inline }: TnefFile, number: number): MailAttachment {
  const sent = content_type.toLowerCase();
  const type = MIME_TYPE.test(sent) && sent !== "application/octet-stream" ? sent : typeOf(name);
  return {
    filename: safeFilename(name, type, number),
    content_type: type,
    size: bytes.length,
    bytes,
    inline,
  };
}

/** The type of a file by the ending of its name, if nothing else gives it. */
export function typeOf(name: string): string {
  const [type = ""] = Bun.file(name.slice(-100)).type.split(";", 1);
  return type;
}
