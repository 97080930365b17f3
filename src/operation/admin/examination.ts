import type { App } from "../../app.ts";
import type { Finding } from "../doctor/check.ts";

/** The examination in progress, or the last one. */
interface Report {
  state: "never" | "running" | "done";
  began: number | null;
  ended: number | null;
  /** How many checks have ended, and how many there are. */
  ended_checks: number;
  checks: number;
  findings: (Omit<Finding, "mend"> & { mend: string | null })[];
}

export interface Examination {
  read: () => Report;
  /**
   * Starts an examination unless one is in progress. `refuse` throws when the rate limit is reached; it is not called
   * for one in progress.
   */
  begin: (refuse: () => void) => Promise<Report>;
}

/**
 * Runs the doctor's checks inside a running server, once at a time, and keeps the last result until the server ends.
 */
export function createExamination(app: App): Examination {
  let report: Report = { state: "never", began: null, ended: null, ended_checks: 0, checks: 0, findings: [] };
  return {
    read: () => report,
    async begin(refuse) {
      if (report.state === "running") return report;
      refuse();
      const { findings } = report;
      report = { state: "running", began: app.now(), ended: null, ended_checks: 0, checks: 0, findings };
      // Loaded at first use, because nothing else needs it.
      const { CHECK_COUNT, examine } = await import("../doctor/doctor.ts");
      report.checks = CHECK_COUNT;
      void examine(app, { running: true, onEnd: () => report.ended_checks++ }).then((found) => {
        const shown = found.map(({ mend = null, ...finding }) => ({ ...finding, mend }));
        report = { ...report, state: "done", ended: app.now(), findings: shown };
      });
      return report;
    },
  };
}
