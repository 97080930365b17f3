import { waitLimit } from "./wait-limit.ts";

export interface PatientFiles {
  /** Runs work that others wait for. Rejects once it has taken too long, and at once while other such work still hangs. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Throws while work hangs: whatever is begun then would hang as well, on one of the few threads that use files. */
  refuseHung(): void;
}

/** Bounds how long a disk is waited for: a share that is away may hang where others fail. Rejects with what `noAnswer` returns. */
export function patientFiles(limit_ms: number, noAnswer: () => Error): PatientFiles {
  let hung = 0;
  const refuseHung = (): void => {
    if (hung > 0) throw noAnswer();
  };
  return {
    refuseHung,
    async run(work) {
      refuseHung();
      const running = work();
      const tooLate = Promise.withResolvers<never>();
      const limit = waitLimit(limit_ms, () => {
        hung += 1;
        const settled = (): void => void (hung -= 1);
        running.then(settled, settled);
        tooLate.reject(noAnswer());
      });
      try {
        return await Promise.race([running, tooLate.promise]);
      } finally {
        limit.clear();
      }
    },
  };
}
