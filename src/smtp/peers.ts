import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Db } from "../db/database.ts";

const ROW = "smtp_peers";
/** Of more than one address there is nothing to warn of. */
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
export async function readPeers(db: Db): Promise<Peers | undefined> {
  const row = await db.selectFrom("installation").select("value").where("name", "=", ROW).executeTakeFirst();
  return row && (JSON.parse(Buffer.from(row.value).toString()) as Peers);
}

function save({ write }: App, peers: Peers): Promise<unknown> {
  const value = Buffer.from(JSON.stringify(peers));
  return write((tx) =>
    tx
      .insertInto("installation")
      .values({ name: ROW, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
      .execute(),
  );
}
