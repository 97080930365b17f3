import type { App } from "../app.ts";
import { fullText } from "../errors.ts";
import { readFiles } from "./certificate.ts";
import { certificateWarning } from "./keep.ts";
import { factsOf } from "./pem.ts";
import { DAY_SECONDS } from "../lib/durations.ts";

const LOOK_MS = 60_000;

export interface FileWatch extends Disposable {
  /** Reads the files now. Never rejects: an unusable pair is logged, and the old one stays. */
  reload: () => Promise<void>;
}

/** Reloads the certificate in `server.cert` and `server.key` soon after it was replaced. */
export function watchFiles(app: App): FileWatch {
  let refused = "";
  let warned_at = 0;
  let last = Promise.resolve();
  // One at a time: each that hangs holds one of the few threads that use files.
  const reload = (): Promise<void> => (last = last.then(reloadNow));
  const reloadNow = async (): Promise<void> => {
    try {
      await takeOver(app);
      refused = "";
    } catch (error) {
      const reason = fullText(error);
      // Logged once and not every minute.
      if (reason !== refused) app.log.error(`the certificate stays the old one: ${reason}`);
      refused = reason;
    }
  };
  const look = async (): Promise<void> => {
    await reload();
    if (app.now() - warned_at < DAY_SECONDS) return;
    const warning = await certificateWarning(app);
    if (warning === undefined) return;
    warned_at = app.now();
    app.log.warn(warning);
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  void look();
  return { reload, [Symbol.dispose]: () => clearInterval(timer) };
}

async function takeOver(app: App): Promise<void> {
  const shown = await app.certificates.current();
  const found = await readFiles(app.config);
  if (found.cert === shown.cert && found.key === shown.key) return;
  await app.certificates.swap(found);
  const { names, until } = factsOf(found.cert);
  app.log.info({ names, until: new Date(until * 1_000).toISOString() }, "the certificate was replaced");
}
