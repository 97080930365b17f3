import type { Share } from "./queue.ts";

/** How many slots of a pool each account uses. */
export interface Shares {
  running: (account: string) => number;
  take: (share: Share | null) => void;
  giveBack: (share: Share | null) => void;
  /** Whether one more job of the account may run now, with so many slots free. */
  hasRoom: (share: Share | null, free: number) => boolean;
  /** Tells which accounts have older work waiting: a newcomer of theirs must wait its turn. */
  setWaiting: (accounts: Set<string>) => void;
}

export function createShares(): Shares {
  const used = new Map<string, number>();
  let waiting = new Set<string>();
  const running = (account: string): number => used.get(account) ?? 0;
  const change = (share: Share | null, by: number): void => {
    if (share === null) return;
    const uses = running(share.account) + by;
    if (uses > 0) used.set(share.account, uses);
    else used.delete(share.account);
  };
  return {
    running,
    take: (share) => change(share, 1),
    giveBack: (share) => change(share, -1),
    hasRoom: (share, free) =>
      share === null || (running(share.account) < (share.slots ?? free) && !waiting.has(share.account)),
    setWaiting: (accounts) => {
      waiting = accounts;
    },
  };
}
