import type { App } from "../app.ts";
import {
  freeFor,
  howToMakeRoom,
  inMb,
  STRANGERS_PERCENT,
  storageOf,
  type Whose,
} from "../resources/billing/storage.ts";
import type { IncomingFile } from "../inbound/accept.ts";
import type { Ending, Run } from "./close.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { type StepDraft, warningStep } from "./steps.ts";

/**
 * Bytes of one run that are kept without asking for the room left: hardly any run makes more, and the query would cost
 * each of them.
 */
const UNASKED_BYTES = 64 * 1_024;
const MAX_NAMES = 5;

/** What is kept of a run, by the room that its account has left. Its text is always kept. */
export interface RoomLeft {
  /** Files that are listed without their bytes. */
  left_out: ReadonlySet<IncomingFile>;
  /** An answering mail larger than this is deleted once it has been handed over. */
  mail_bytes: number;
  warnings: StepDraft[];
}

const ENOUGH: RoomLeft = { left_out: new Set(), mail_bytes: Number.POSITIVE_INFINITY, warnings: [] };

/**
 * Weighs what a run is about to add against the storage bound of its account. An accepted run always ends; of its files
 * those are kept that fit, the ones it made before the ones it was given.
 */
export async function roomLeft(
  app: App,
  run: Run,
  { files, ending }: { files: IncomingFile[]; ending: Ending },
): Promise<RoomLeft> {
  const { message, input, settings, owner_plan: plan } = run;
  // Nothing of a private run is kept anyway.
  if (settings.private && ending.state === "done") return ENOUGH;
  const given = message.raw_mail_id === null ? [] : input.files;
  const text_bytes = ending.state === "done" ? Buffer.byteLength(ending.result) : 0;
  if (bytesOf([...files, ...given]) + text_bytes <= UNASKED_BYTES) return ENOUGH;
  const storage = await storageOf(app, app.db, { id: message.user_id, plan });
  const whose: Whose = hasAuthority(message) ? "household" : "strangers";
  let room = freeFor(storage, whose) - text_bytes;
  const left_out = [...files, ...given].filter(({ bytes }) => {
    const fits = bytes.byteLength <= room;
    if (fits) room -= bytes.byteLength;
    return !fits;
  });
  const said = { left_out, limit_bytes: storage.limit_bytes ?? 0, whose, mend: howToMakeRoom(app, plan) };
  return {
    left_out: new Set(left_out),
    mail_bytes: room,
    warnings:
      left_out.length === 0
        ? []
        : [warningStep(sentenceOf({ ...said, in_mail: given.some((file) => left_out.includes(file)) }))],
  };
}

function bytesOf(files: IncomingFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}

function sentenceOf(lack: {
  left_out: IncomingFile[];
  limit_bytes: number;
  whose: Whose;
  mend: string;
  in_mail: boolean;
}): string {
  const { left_out, whose } = lack;
  const names = left_out.slice(0, MAX_NAMES).map(({ filename }) => filename);
  const more = left_out.length - names.length;
  const list = [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
  const share =
    whose === "household" ? "" : `, of which what strangers cause may fill ${STRANGERS_PERCENT} %`;
  return [
    `Not kept for want of room: ${list} (${inMb(bytesOf(left_out))}).`,
    `This account may store ${inMb(lack.limit_bytes)}${share}.`,
    ...(lack.in_mail ? ["The mail as it came still has what came with it."] : []),
    lack.mend,
  ].join(" ");
}
