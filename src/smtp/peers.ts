import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Db } from "../db/database.ts";
import { keepNote, readNote } from "../db/installation.ts";

const ROW = "smtp_peers";
/** Addresses that are stored: `doctor` warns only if all mail comes from one. */
const ADDRESSES_KEPT = 2;

/** The addresses that mail has come from since the start of the server; up to half of `mails` may be missing when read. */
export interface Peers {
  since: number;
  mails: number;
  /** The first addresses; it only matters whether there is more than one. */
  addresses: string[];
}

/** Counts mails and their addresses. They are stored for `doctor` at each new address, and when the count has doubled. */
export function createPeerCount(app: App): (address: string) => void {
  const peers: Peers = { since: app.now(), mails: 0, addresses: [] };
  let save_at = 1;
  return (address) => {
    peers.mails += 1;
    const { addresses } = peers;
    const is_new = addresses.length < ADDRESSES_KEPT && !addresses.includes(address);
    if (is_new) addresses.push(address);
    if (!is_new && peers.mails < save_at) return;
    save_at = 2 * peers.mails;
    save(app, peers).catch((error: unknown) =>
      app.log.debug({ err: messageOf(error) }, "the count of peers was not saved"),
    );
  };
}

/** Returns the stored counts. */
export function readPeers(db: Db): Promise<Peers | undefined> {
  return readNote<Peers>(db, ROW);
}

function save({ write }: App, peers: Peers): Promise<void> {
  const now = structuredClone(peers);
  return write((tx) => keepNote(tx, ROW, now));
}
