import SMTPConnection from "nodemailer/lib/smtp-connection";
import { type WaitLimit, waitLimit } from "../../lib/wait-limit.ts";

/** The timer of a nodemailer session until it is greeted and encrypted, and its callback. */
interface Phases {
  options: { greetingTimeout?: number };
  phase_limit?: WaitLimit | undefined;
  _startPhase(ms: number, late: Error): void;
  _clearPhase(): void;
  _remainingSetupTime(): number;
  _onError(error: Error, code: string, data: false, command: string): void;
}

/**
 * Makes nodemailer wait like `waitLimit` for a connection, its greeting and its encryption, in all sessions: after a
 * pause in which nothing was read, its own timer would end sessions that have been answered. Each phase has its own
 * time, because after such a pause none would be left for the next.
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
