import type { Config } from "../config/config.ts";
import type { WatchLog } from "../db/watch.ts";
import { loadCertificate } from "./certificate.ts";
import type { Certificate } from "./pem.ts";

/** What the doors of this server show, and how it is changed while they are open. */
export interface Certificates {
  /** What new connections see; read from disk when first asked for. */
  current: () => Promise<Certificate>;
  /** Shows another from now on, at every door. Connections that are open stay as they are. */
  swap: (certificate: Certificate) => Promise<void>;
  /** Has a door told of each swap, until the returned function is called. */
  onSwap: (show: Show) => () => void;
  /** What is answered for each token of the orders under way (RFC 8555 §8.3). */
  challenges: Map<string, string>;
}

type Show = (certificate: Certificate) => void;

export function createCertificates(config: Config, log: WatchLog): Certificates {
  const doors = new Set<Show>();
  let current: Promise<Certificate> | undefined;
  return {
    current: () => (current ??= loadCertificate(config, log)),
    async swap(certificate) {
      for (const show of doors) show(certificate);
      current = Promise.resolve(certificate);
    },
    onSwap(show) {
      doors.add(show);
      return () => void doors.delete(show);
    },
    challenges: new Map(),
  };
}
