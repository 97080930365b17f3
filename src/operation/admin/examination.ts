import type { App } from "../../app.ts";
import type { Finding } from "../doctor/check.ts";

/** The doctor's present check, or its last findings. */
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
  /** Begins to look, unless it is being done; then `refuse` is not asked. */
  begin: (refuse: () => void) => Promise<Report>;
}

/** The doctor inside of a running server: one look at a time, of which the last is kept until the server ends. */
export function createExamination(app: App): Examination {
  let report: Report = { state: "never", began: null, ended: null, ended_checks: 0, checks: 0, findings: [] };
  return {
    read: () => report,
    async begin(refuse) {
      if (report.state === "running") return report;
      refuse();
      const { findings } = report;
      report = { state: "running", began: app.now(), ended: null, ended_checks: 0, checks: 0, findings };
      // Nothing else needs it, so a server loads it only when it is asked for.
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
