import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Db } from "../db/database.ts";
import { keepNote, readNote } from "../db/installation.ts";

const ROW = "smtp_peers";
/** Addresses that are remembered: clients with more than one give nothing to warn of. */
const ADDRESSES_KEPT = 2;

/** From where mail has come in since the server was started; when read, up to half of the mails may be missing. */
export interface Peers {
  since: number;
  mails: number;
  /** The first of them; more than one is all that matters. */
  addresses: string[];
}

/** Counts the mails of each address. Written down for `doctor` at every new one, and whenever the count has doubled. */
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

/** What was written down last. */
export function readPeers(db: Db): Promise<Peers | undefined> {
  return readNote<Peers>(db, ROW);
}

function save({ write }: App, peers: Peers): Promise<void> {
  const now = structuredClone(peers);
  return write((tx) => keepNote(tx, ROW, now));
}
