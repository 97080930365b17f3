import SMTPConnection from "nodemailer/lib/smtp-connection";
import { type WaitLimit, waitLimit } from "../../lib/wait-limit.ts";

/** The clock that a session of the library has until it is greeted and encrypted, and what that calls. */
interface Phases {
  options: { greetingTimeout?: number };
  phase_limit?: WaitLimit | undefined;
  _startPhase(ms: number, late: Error): void;
  _clearPhase(): void;
  _remainingSetupTime(): number;
  _onError(error: Error, code: string, data: false, command: string): void;
}

/**
 * Has the library wait as `waitLimit` does for a connection, its greeting and its encryption, in all sessions: after a time
 * in which nothing was read, its own clock ends what has been answered. Each phase has its time for itself, for after such
 * a pause there would be none left for the next.
 */
export function waitPatiently(): void {
  Object.assign(SMTPConnection.prototype, PATIENT);
}

const PATIENT: Omit<Phases, "options" | "_onError"> & ThisType<Phases> = {
  _startPhase(ms, late) {
    this._clearPhase();
    this.phase_limit = waitLimit(ms, () => this._onError(late, "ETIMEDOUT", false, "CONN"));
  },
  _clearPhase() {
    this.phase_limit?.clear();
    this.phase_limit = undefined;
  },
  _remainingSetupTime() {
    return this.options.greetingTimeout ?? 0;
  },
};
