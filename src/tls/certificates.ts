import type { Config } from "../config/config.ts";
import type { WatchLog } from "../db/watch.ts";
import { loadCertificate } from "./certificate.ts";
import type { Certificate } from "./pem.ts";

/** The certificate that the listeners ("doors") of this server present, and how it is changed while they are open. */
export interface Certificates {
  /** Returns the certificate for new connections; read from disk when first asked for. */
  current: () => Promise<Certificate>;
  /** Presents another certificate from now on, at every listener. Open connections stay as they are. */
  swap: (certificate: Certificate) => Promise<void>;
  /** Calls `show` at each swap, until the returned function is called. */
  onSwap: (show: Show) => () => void;
  /** Answers to the HTTP-01 challenges of orders in progress, by token (RFC 8555 §8.3). */
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
